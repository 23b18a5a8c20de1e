from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.capture.cli import capture_app
from tests.pipeline.capture.test_landing import capture, everything
from tests.pipeline.capture.wire import Flow


def run(*arguments: object, stdin: bytes | None = None):
    return CliRunner().invoke(capture_app, ["read", *map(str, arguments)], input=stdin)


@pytest.fixture
def pcap(tmp_path) -> Path:
    return capture(tmp_path / "x.pcap")


def test_a_summary_for_people(pcap, tmp_path):
    result = run(pcap, "--landing", tmp_path / "landing")
    assert result.exit_code == 0
    assert "ApiVersions" in result.stdout
    assert "1 kafka" in result.stdout
    assert "2 landing files written" in result.stdout


def test_a_summary_for_programs(pcap, tmp_path):
    result = run(pcap, "--landing", tmp_path / "landing", "--json")
    summary = json.loads(result.stdout)
    assert summary["connections"] == {"kafka": 1}
    assert summary["requests"] == {"18:0": 19}
    assert len(summary["files"]) == 2


def test_a_directory_and_standard_input(pcap, tmp_path):
    for source, stdin in ((tmp_path, None), ("-", pcap.read_bytes())):
        summary = json.loads(run(source, "--landing", tmp_path / "landing", "--json", stdin=stdin).stdout)
        assert summary["packets"] > 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"hello, I am a text file", "is not a capture"),
        (None, "does not exist"),
        ("cut", "truncated at"),
    ],
)
def test_unusable_input_is_told_with_exit_code_2_and_lands_nothing(pcap, tmp_path, content, says):
    bad = tmp_path / "bad.pcap"
    if content is not None:
        bad.write_bytes(pcap.read_bytes()[:-5] if content == "cut" else content)
    result = run(bad, "--landing", tmp_path / "landing")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "landing").exists() or everything(tmp_path / "landing") == []


def test_the_other_files_of_a_run_land(pcap, tmp_path):
    result = run(tmp_path / "missing.pcap", pcap, "--landing", tmp_path / "landing", "--json")
    assert result.exit_code == 2
    assert len(json.loads(result.stdout)["files"]) == 2


def test_allow_truncated(pcap, tmp_path):
    pcap.write_bytes(pcap.read_bytes()[:-5])
    result = run(pcap, "--landing", tmp_path / "landing", "--allow-truncated", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["files"]


def test_a_capture_without_kafka_says_so(tmp_path):
    path = Flow().open().send(0, b"GET / HTTP/1.1\r\n\r\n").close().write(tmp_path / "http.pcap")
    result = run(path, "--landing", tmp_path / "landing")
    assert result.exit_code == 0
    assert "No Kafka connection found" in result.stdout


def test_help_has_examples():
    assert "wirelake capture read incident.pcap" in run("--help").stdout
