"""A server that answers in another protocol, or only closes, is reported wherever something is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from tests.pipeline.capture.sessions.test_mismatch_text import ALERT, HTTP_400, KAFKA, MONGODB, conversations
from tests.pipeline.capture.wire import Flow, pcap, response

TITLES = {KAFKA: "Kafka", MONGODB: "MongoDB"}
FIN, RST = 0x11, 0x14


def closing(asks: bytes, flags: int, *, by: int = 1, answer: bytes = b"", count: int = 5) -> list:
    """Connections that one side closes behind the first request, and behind ``answer``."""
    packets = []
    for number in range(count):
        flow = Flow(
            client=("10.0.0.5", 41000 + number), server=("10.0.0.9", 9092), ts=1_700_000_000_000_000 + number * 10**6
        )
        flow.open().send(0, asks)
        if answer:
            flow.send(1, answer)
        flow.add(by, flow.seq[by], flow.seq[1 - by], flags)
        flow.add(1 - by, flow.seq[1 - by], flow.seq[by] + 1, FIN)
        packets += flow.packets
    return packets


def printed(*arguments: str, code: int) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def rules(capture: Path) -> list[tuple[str, str]]:
    done = CliRunner().invoke(app, ["diagnose", "--json", str(capture)])
    return [(one["rule"], one["severity"]) for one in map(json.loads, done.stdout.splitlines())]


def written(tmp_path: Path, packets: list) -> Path:
    capture = tmp_path / "some.pcap"
    capture.write_bytes(pcap(packets))
    return capture


@pytest.mark.parametrize("asks", [KAFKA, MONGODB], ids=["kafka", "mongodb"])
@pytest.mark.parametrize(("answer", "kind"), [(HTTP_400, "HTTP"), (ALERT, "TLS")], ids=["http", "tls"])
def test_another_protocol_is_reported_everywhere(tmp_path, asks, answer, kind):
    capture = written(tmp_path, conversations(asks, answer))
    zone, lake = str(tmp_path / "zone"), str(tmp_path / "lake")
    claim = f"10.0.0.9:9092 answers {kind} to the {TITLES[asks]} requests"
    assert claim in printed("diagnose", str(capture), "--lake", lake, code=1)
    assert claim in printed("findings", "--lake", lake, code=1)
    printed("capture", "read", str(capture), "--landing", zone, code=0)
    assert claim in printed("diagnose", zone, code=1)
    assert claim in printed("top", "--once", str(capture), code=1)


@pytest.mark.parametrize("asks", [KAFKA, MONGODB], ids=["kafka", "mongodb"])
@pytest.mark.parametrize("flags", [FIN, RST], ids=["fin", "rst"])
def test_a_server_that_only_closes_is_no_broker_that_hangs(tmp_path, asks, flags):
    capture = written(tmp_path, closing(asks, flags))
    assert rules(capture) == [("other_protocol", "warning")]
    text = printed("diagnose", str(capture), code=0)
    assert "closes each connection before it answers anything" in text
    assert "restart" not in text


def test_a_client_that_closes_says_nothing_of_the_server(tmp_path):
    assert "other_protocol" not in dict(rules(written(tmp_path, closing(KAFKA, FIN, by=0))))


def test_a_broker_that_answers_some_is_one(tmp_path):
    answered = closing(KAFKA, FIN, answer=response(1), count=6)
    packets = [*closing(KAFKA, FIN), *answered[len(answered) * 5 // 6 :]]
    assert "other_protocol" not in dict(rules(written(tmp_path, packets)))


def test_one_connection_is_no_certain_case(tmp_path):
    assert rules(written(tmp_path, conversations(KAFKA, HTTP_400, count=1))) == [("other_protocol", "warning")]
    assert rules(written(tmp_path, closing(KAFKA, FIN, count=2))) == []
