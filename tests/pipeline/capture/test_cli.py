from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from decoder.field_hash import FieldHash
from decoder.model import PayloadPolicy
from pipeline.capture.cli import capture_app
from pipeline.errors import UserError
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record
from tests.paths import CAPTURES
from tests.pipeline.capture.landing.test_landing import capture, everything
from tests.pipeline.capture.wire import Flow, prefixed


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


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_summary_of_kafka_and_mongodb_together(tmp_path, options):
    files = CAPTURES / "healthy.pcap", CAPTURES / "mongodb" / "plain.pcap"
    result = run(*files, "--landing", tmp_path / "landing", *options)
    assert result.exit_code == 0, result.exception
    kafka, mongodb = ('"1:18"', '"OP_MSG"') if options else ("Fetch", "OP_MSG")
    assert result.stdout.index(kafka) < result.stdout.index(mongodb)


def test_a_summary_for_programs(pcap, tmp_path):
    result = run(pcap, "--landing", tmp_path / "landing", "--json")
    summary = json.loads(result.stdout)
    assert summary["connections"] == {"kafka": 1}
    assert summary["requests"] == {"18:0": 19}
    assert len(summary["files"]) == 2


@pytest.mark.parametrize("place", ["", " ", "file://"])
def test_an_empty_landing_zone_is_not_the_current_directory(pcap, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    result = run(pcap, "--landing", place)
    assert isinstance(result.exception, UserError)  # exit code 2, see pipeline.cli
    assert "--landing is empty" in str(result.exception)
    assert list(tmp_path.iterdir()) == [pcap]


def test_a_directory_and_standard_input(pcap, tmp_path):
    for source, stdin in ((tmp_path, None), ("-", pcap.read_bytes())):
        summary = json.loads(run(source, "--landing", tmp_path / "landing", "--json", stdin=stdin).stdout)
        assert summary["packets"] > 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"hello, I am a text file", "is not a capture"),
        (None, "does not exist"),
        ("cut", "truncated at"),
    ],
)
def test_unusable_input_is_reported_with_exit_code_2_and_lands_nothing(pcap, tmp_path, content, reason):
    bad = tmp_path / "bad.pcap"
    if content is not None:
        bad.write_bytes(pcap.read_bytes()[:-5] if content == "cut" else content)
    result = run(bad, "--landing", tmp_path / "landing", "--strict")
    assert result.exit_code == 2
    assert reason in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "landing").exists() or everything(tmp_path / "landing") == []


def test_the_other_files_of_a_run_land(pcap, tmp_path):
    result = run(tmp_path / "missing.pcap", pcap, "--landing", tmp_path / "landing", "--json")
    assert result.exit_code == 2
    assert len(json.loads(result.stdout)["files"]) == 2


@pytest.mark.parametrize("options", [[], ["--allow-truncated"]])
def test_a_file_that_is_cut_off_lands_up_to_there(pcap, tmp_path, options):
    pcap.write_bytes(pcap.read_bytes()[:-5])
    result = run(pcap, "--landing", tmp_path / "landing", *options, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["files"]


def test_a_capture_without_kafka_is_reported(tmp_path):
    path = Flow().open().send(0, b"GET / HTTP/1.1\r\n\r\n").close().write(tmp_path / "http.pcap")
    result = run(path, "--landing", tmp_path / "landing")
    assert result.exit_code == 0
    assert "No Kafka or MongoDB connection found" in result.stdout


class TestPayload:
    KEY = "a-key-of-this-deployment"

    @pytest.fixture(autouse=True)
    def _no_settings_of_the_machine(self, monkeypatch):
        for name in ("WIRELAKE_PAYLOAD_KEY", "WIRELAKE_PAYLOAD_KEY_FILE", "WIRELAKE_PAYLOAD_POLICY"):
            monkeypatch.delenv(name, raising=False)

    @pytest.fixture
    def produced(self, tmp_path) -> Path:
        body = {
            "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": batch([record(b"k" * 9, b"v")])}]}]
        }
        flow = Flow().open().send(0, prefixed(encode.request(0, 9, body, correlation_id=1)))
        return flow.send(1, prefixed(encode.response(0, 9, {}, correlation_id=1))).close().write(tmp_path / "p.pcap")

    def land(self, tmp_path, produced, *options) -> set[tuple[str, bytes]]:
        """Policy and frame of what landed."""
        landing = tmp_path / f"landing {options}"
        result = run(produced, "--landing", landing, *options)
        assert result.exit_code == 0, result.output
        tables = [pq.ParquetFile(path).read() for path in landing.glob("date=*/*.parquet")]
        return {(row["payload_policy"], row["frame"]) for table in tables for row in table.to_pylist()}

    @pytest.mark.parametrize("policy", get_args(PayloadPolicy))
    def test_the_policy_is_that_of_the_command_line_else_of_the_environment(
        self, tmp_path, produced, monkeypatch, policy
    ):
        monkeypatch.setenv("WIRELAKE_PAYLOAD_KEY", self.KEY)
        given = self.land(tmp_path, produced, "--payload", policy)
        assert {name for name, _ in given} == {policy}
        monkeypatch.setenv("WIRELAKE_PAYLOAD_POLICY", policy)
        assert self.land(tmp_path, produced) == given
        assert {name for name, _ in self.land(tmp_path, produced, "--payload", "lengths")} == {"lengths"}

    def test_lengths_by_default(self, tmp_path, produced):
        assert self.land(tmp_path, produced) == self.land(tmp_path, produced, "--payload", "lengths")

    def test_the_key_comes_from_a_file_or_the_environment(self, tmp_path, produced, monkeypatch):
        file = tmp_path / "payload.key"
        file.write_text(self.KEY + "\n")
        by_file = self.land(tmp_path, produced, "--payload", "hash", "--payload-key-file", file)
        monkeypatch.setenv("WIRELAKE_PAYLOAD_KEY", self.KEY)
        assert self.land(tmp_path, produced, "--payload", "hash") == by_file
        assert any(FieldHash(self.KEY.encode())(b"k" * 9) in frame for _, frame in by_file)

    @pytest.mark.parametrize(
        ("key", "file", "reason"),
        [
            (None, None, "openssl rand -hex 32"),
            ("s3cret", None, "in WIRELAKE_PAYLOAD_KEY cannot be used: the key has 6 bytes; at least 16"),
            (None, b"s3cret\n", "payload.key cannot be used: the key has 6 bytes"),
            (KEY, "missing", "payload.key cannot be read: No such file"),
        ],
    )
    def test_hash_without_a_good_key_lands_nothing(self, tmp_path, produced, monkeypatch, key, file, reason):
        if key is not None:
            monkeypatch.setenv("WIRELAKE_PAYLOAD_KEY", key)
        path = tmp_path / "payload.key"
        if isinstance(file, bytes):
            path.write_bytes(file)
        options = ["--payload-key-file", path] if file is not None else []
        result = run(produced, "--landing", tmp_path / "landing", "--payload", "hash", *options)
        assert isinstance(result.exception, UserError)
        assert reason in str(result.exception)
        assert "s3cret" not in str(result.exception)
        assert not (tmp_path / "landing").exists()

    @pytest.mark.parametrize("key", ["4711" * 8, "a1b2/c3+d4" * 4])
    def test_a_key_in_the_place_of_its_file_is_not_shown(self, tmp_path, produced, key):
        result = run(produced, "--landing", tmp_path / "landing", "--payload", "hash", "--payload-key-file", key)
        shown = "".join(traceback.format_exception(result.exception))
        assert "not the key itself" in shown
        assert key not in shown


def test_help_has_examples():
    assert "wirelake capture read incident.pcap" in run("--help").stdout
