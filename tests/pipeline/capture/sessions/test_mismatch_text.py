"""Servers that answer in another protocol than they are asked in: named, and never a loss."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from decoder.model import Frame, FrameFlags, Gap
from pipeline.capture.runs.summary import nothing_found, warnings
from pipeline.capture.sessions.foreign_protocols import NOTHING, TEXT, UNKNOWN, answer_of_another, kind_of
from pipeline.capture.sessions.mismatch_text import misunderstandings, other_protocols
from pipeline.capture.stats import MAX_OTHER_TALK, CaptureStats, OtherTalk
from pipeline.cli import main
from tests.decoder.mongodb.build import command, reply
from tests.pipeline.capture.fast_path.test_lanes import by_blocks, one_by_one
from tests.pipeline.capture.sessions.test_proxy_protocol import HEADERS
from tests.pipeline.capture.sessions.test_resume import in_one_go, interrupted, without_unanswered
from tests.pipeline.capture.wire import Flow, pcap, request, response

KAFKA, MONGODB = request(1), command({"hello": 1, "$db": "admin"})
HELLO = b"\x16\x03\x01\x00\x30\x01\x00\x00\x2c\x03\x03" + bytes(42)
ALERT = b"\x15\x03\x03\x00\x02\x02\x46"
HTTP_400 = (
    b"HTTP/1.0 400 Bad request\r\nCache-Control: no-cache\r\nContent-Type: text/html\r\n\r\n<html>" + b"s3cret" * 20
)
MONGODB_HTTP = (
    b"HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 85\r\n\r\nIt looks like you "
    b"are trying to access MongoDB over HTTP on the native driver port.\r\n"
)
ANSWERS = {
    "HTTP": HTTP_400,
    "TLS": ALERT,
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "Redis": b"-ERR unknown command '\\x00'\r\n",
    "AMQP": b"AMQP\0\0\x09\x01",
    "SMTP or FTP": b"220 mail.example ESMTP\r\n",
    TEXT: b"Protocol mismatch.\n",
}
ASKED = {
    "HTTP": b"GET /metrics HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "SSH": b"SSH-2.0-libssh\r\n",
    "Redis": b"*1\r\n$4\r\nPING\r\n",
    "PostgreSQL": b"\0\0\0\x29\0\3\0\0user\0app\0database\0shop\0\0",
    "ZooKeeper": b"ruok",
    "AMQP": b"AMQP\0\0\x09\x01",
}


def conversations(asks: bytes, answers: bytes, *, count: int = 5, mss: int = 1460, port: int = 9092) -> list:
    packets = []
    for number in range(count):
        flow = Flow(
            client=("10.0.0.5", 40000 + number), server=("10.0.0.9", port), ts=1_700_000_000_000_000 + number * 10**6
        )
        flow.open().send(0, asks, mss).send(1, answers, mss)
        flow.add(1, flow.seq[1], flow.seq[0], 0x11)
        flow.add(0, flow.seq[0], flow.seq[1] + 1, 0x11)
        packets += flow.packets
    return packets


@pytest.mark.parametrize(("asks", "title"), [(KAFKA, "Kafka"), (MONGODB, "MongoDB")])
@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("mss", [1460, 3, 1])
def test_a_server_that_answers_something_else_is_named(asks, title, kind, mss):
    rows, stats = one_by_one(conversations(asks, ANSWERS[kind], mss=mss), "lengths")
    assert stats.other_talk == {OtherTalk("10.0.0.9", 9092, title, kind): 5}
    assert (stats.gaps, stats.bytes_lost, stats.truncated) == (0, 0, 0)
    assert [row.direction for row in rows if isinstance(row, Frame)] == ["request"] * 5
    (sentence,) = misunderstandings(stats)
    assert sentence.startswith(f"the server 10.0.0.9:9092 answers {kind} to {title} requests (5 connections): ")
    assert ("TCP mode" in sentence) == (kind == "HTTP")
    assert ("does not use it" in sentence) == (kind == "TLS")
    assert warnings(stats) == [sentence]
    assert "s3cret" not in str(stats.as_dict())


@pytest.mark.parametrize("page", [b"<!DOCTYPE HTML>\n<html lang='en'>", b"<html>\r\n<head><title>400 Bad Request"])
def test_a_page_without_a_header_is_http(page):
    assert answer_of_another(page) == "HTTP"


def test_requests_stay_without_an_answer_and_the_protocol_is_noted_beside_them():
    rows, _ = one_by_one(conversations(KAFKA, HTTP_400), "lengths")
    assert {row.flags for row in rows if isinstance(row, Frame)} == {FrameFlags.UNANSWERED}
    noted = {(row.method, row.bytes_lost, row.direction, row.seq) for row in rows if isinstance(row, Gap)}
    assert noted == {("speaks HTTP", 0, "response", 0)}
    assert not any(b"s3cret" in row.frame for row in rows if isinstance(row, Frame))


@pytest.mark.parametrize("answers", [ALERT, HTTP_400, response(1)])
def test_the_same_by_the_block_and_after_an_interruption(answers):
    packets = conversations(KAFKA, answers, mss=7)
    expected, stats = one_by_one(packets, "lengths")
    rows, counted, _ = by_blocks(packets, "lengths", 9)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()
    at = len(packets) // 5 - 3
    assert without_unanswered(interrupted(packets, [at])) == without_unanswered(in_one_go(packets))


@pytest.mark.parametrize("kind", ASKED)
def test_other_protocols_are_named(kind):
    _, stats = one_by_one(conversations(ASKED[kind], b"", count=3), "lengths")
    assert stats.not_recognised == {"not_recognised": 3}
    assert other_protocols(stats) == f"{kind} with 10.0.0.9:9092: 3"
    assert warnings(stats) == [f"not read: 3 connections, other protocols ({kind} with 10.0.0.9:9092: 3)"]
    assert f"({kind} with 10.0.0.9:9092: 3)" in nothing_found(stats)
    assert not misunderstandings(stats)


def test_mongodb_answers_http_with_http():
    _, stats = one_by_one(conversations(ASKED["HTTP"], MONGODB_HTTP, port=27017), "lengths")
    assert stats.other_talk == {OtherTalk("10.0.0.9", 27017, "HTTP", "HTTP"): 5}


def test_what_nobody_knows_is_unknown():
    _, stats = one_by_one(conversations(b"\x01\x02\x03\x04\x05\x06\x07\x08" * 4, b"\xff" * 9), "lengths")
    assert other_protocols(stats) == f"{UNKNOWN} with 10.0.0.9:9092: 5"


class TestTls:
    def test_a_handshake_that_is_answered_in_clear(self):
        _, stats = one_by_one(conversations(HELLO, HTTP_400), "lengths")
        assert (stats.not_recognised, stats.tls) == ({"not_recognised": 5}, {})
        assert nothing_found(stats) == (
            "no Kafka or MongoDB message found: the server 10.0.0.9:9092 answers HTTP to TLS handshakes "
            "(5 connections): this port does not speak TLS, or it is the wrong port"
        )

    def test_a_handshake_that_is_not_answered(self):
        """As brokers of both protocols do, that were told of no certificate."""
        _, stats = one_by_one(conversations(HELLO, b""), "lengths")
        (sentence,) = misunderstandings(stats)
        assert "closes TLS handshakes without an answer (5 connections)" in sentence

    def test_a_handshake_that_is_answered(self):
        _, stats = one_by_one(conversations(HELLO, b"\x16\x03\x03\x00\x10" + bytes(16)), "lengths")
        assert (stats.not_recognised, stats.other_talk) == ({"tls": 5}, {})

    def test_one_that_is_refused_by_an_alert_is_tls(self):
        _, stats = one_by_one(conversations(HELLO, ALERT), "lengths")
        assert (stats.not_recognised, stats.other_talk) == ({"tls": 5}, {})

    def test_http_at_a_tls_port(self):
        _, stats = one_by_one(conversations(ASKED["HTTP"], ALERT), "lengths")
        assert stats.other_talk == {OtherTalk("10.0.0.9", 9092, "HTTP", "TLS"): 5}
        assert not stats.tls

    def test_one_of_which_the_answer_was_not_captured(self):
        packets = [packet for packet in conversations(HELLO, b"") if packet.data[30:34] != bytes([10, 0, 0, 5])]
        _, stats = one_by_one(packets, "lengths")
        assert (stats.not_recognised, stats.other_talk) == ({"tls": 5}, {})


class TestAnswersOfOurs:
    def test_they_are_never_taken_for_others(self):
        for number in (0, 1, 2**31 - 1, 0x48545450, 0x15030300):
            assert answer_of_another(response(number)) == ""
            assert answer_of_another(reply({"ok": 1}, response_to=number, request_id=number)) == ""
        for size in (0x15, 0x48, 0x2B2B, 0x202020, 0x1F7E7E7E):
            for order in ("big", "little"):
                assert answer_of_another(size.to_bytes(4, order) + b"\0" * 12) == ""

    def test_joined_midway_nothing_is_said(self):
        """What looks like another protocol may be the content of a message."""
        packets = conversations(KAFKA, HTTP_400, count=1)[3:]
        _, stats = one_by_one(packets, "lengths")
        assert not stats.other_talk

    def test_later_answers_are_looked_at_as_losses(self):
        flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, request(2)).send(1, HTTP_400)
        rows, stats = one_by_one(flow.close().packets, "lengths")
        assert not stats.other_talk
        assert any(isinstance(row, Gap) for row in rows)

    def test_behind_a_proxy_header_too(self):
        _, stats = one_by_one(conversations(HEADERS["text 4"][0] + KAFKA, HTTP_400), "lengths")
        assert stats.other_talk == {OtherTalk("10.0.0.9", 9092, "Kafka", "HTTP"): 5}


def test_kinds_of_nothing_and_of_text():
    assert [kind_of(data) for data in (b"", b"hello, world", b"\0" * 9)] == [NOTHING, TEXT, UNKNOWN]


def test_the_list_is_bounded_and_survives_json():
    stats = CaptureStats()
    for port in range(MAX_OTHER_TALK + 5):
        stats.count_other_talk(OtherTalk("10.0.0.9", port, "Kafka", "HTTP"))
    assert len(stats.other_talk) == MAX_OTHER_TALK
    assert CaptureStats.of_dict(stats.as_dict()).other_talk == stats.other_talk
    stats.add(stats)
    assert stats.other_talk[OtherTalk("10.0.0.9", 0, "Kafka", "HTTP")] == 2
    assert misunderstandings(stats)[-1] == "and 997 more servers like that (--json lists them)"


@pytest.mark.parametrize("command_", [["diagnose"], ["diagnose", "--follow"]])
def test_diagnose_does_not_call_it_fine(command_, tmp_path, capsys, monkeypatch):
    path = tmp_path / "answers.pcap"
    path.write_bytes(pcap(conversations(KAFKA, HTTP_400)))
    monkeypatch.setattr("sys.argv", ["wirelake", *command_, str(path)])
    code = 0
    with suppress(SystemExit):
        try:
            main()
        except SystemExit as error:
            code = error.code
            raise
    captured = capsys.readouterr()
    assert "answers HTTP to Kafka requests (5 connections)" in captured.err
    assert "10.0.0.9:9092 answers HTTP to the Kafka requests" in " ".join(captured.out.split())
    assert "looks wrong" not in captured.out
    assert "bytes lost" not in captured.out
    assert code == 1
