"""MongoDB through the whole agent: what tshark sees, in whatever order and pieces; nothing that must not land."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoder.model import Frame, FrameFlags, Gap
from decoder.protocols import protocols
from pipeline.capture.runs.one_capture import frames_of
from pipeline.cli import app
from tests.canaries import seen_in, seen_in_files
from tests.captures.mongodb.record import HERE, OLD, RECORDINGS
from tests.decoder.mongodb.build import command, reply, sequence
from tests.decoder.mongodb.redaction.planted import CREDENTIALS, HIDING, PAYLOAD, POLICIES, SECRET, TRACES, variants
from tests.pipeline.capture.reading import packets_of
from tests.pipeline.capture.wire import Flow, pcap, request, response
from tests.requirements import require_tshark

PATHS = [HERE / f"{name}.pcap" for name in (*RECORDINGS, OLD)]
KEY = "a key of this deployment"


def frames(path: Path) -> list[Frame]:
    items = list(frames_of(path, payload_policy="full"))
    assert not any(isinstance(item, Gap) for item in items)
    return [item for item in items if isinstance(item, Frame)]


def run(*arguments: object) -> tuple[int, bytes]:
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"WIRELAKE_PAYLOAD_KEY": KEY, "COLUMNS": "200"})
    return done.exit_code, (done.stdout + done.stderr).encode()


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_messages_are_those_that_tshark_sees(path):
    require_tshark()
    names = ["tcp.srcport", "mongo.request_id", "mongo.response_to", "mongo.opcode", "mongo.message_length"]
    fields = [argument for name in names for argument in ("-e", name)]
    shown = subprocess.run(
        ["tshark", "-r", str(path), "-d", "tcp.port==27017,mongo", "-Y", "mongo", "-T", "fields", *fields],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    seen = []
    for line in shown.splitlines():
        port, *columns = line.split("\t")
        rows = zip(*(column.split(",") for column in columns), strict=True)
        seen += [(int(port) == 27017, *(int(value, 0) for value in row)) for row in rows]
    found = [
        (f.direction == "response", f.correlation_id % 2**32, f.reply_to % 2**32, f.api_key, f.size)
        for f in frames(path)
    ]
    unsigned = [(side, one % 2**32, other % 2**32, opcode, size) for side, one, other, opcode, size in seen]
    print(f"{path.stem}: {len(found)} messages compared, {len(set(found) & set(unsigned))} equal")
    assert sorted(found) == sorted(unsigned)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
@pytest.mark.parametrize("seed", range(4))
def test_packets_mixed_up_doubled_and_cut_smaller_give_the_same_messages(path, seed, tmp_path):
    source = random.Random(seed)
    packets = packets_of(path)
    for at in range(0, len(packets) - 1):
        if source.random() < 0.1 and packets[at + 1].ts_us - packets[at].ts_us < 1000:
            packets[at], packets[at + 1] = packets[at + 1], packets[at]
    doubled = [packet for one in packets for packet in [one] * source.choice((1, 1, 1, 2))]
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(pcap(doubled))

    def content(found: list[Frame]) -> list[tuple]:
        return sorted((f.client_port, f.direction, f.seq, f.exchange_id.split("-")[1], f.flags, f.frame) for f in found)

    assert content(frames(copy)) == content(frames(path))


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
@pytest.mark.parametrize("seed", range(8))
def test_of_a_capture_with_losses_no_message_is_false(path, seed, tmp_path):
    """Packets are lost, or the capture begins late: what is given whole was sent, and is paired as it was."""
    source = random.Random(seed)
    packets = packets_of(path)
    begin = source.choice((0, 0, 5, source.randrange(len(packets) // 2)))
    kept = [packet for packet in packets[begin:] if source.random() > 0.04]
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(pcap(kept))
    true = {(f.client_port, f.direction, f.frame): f for f in frames(path)}
    items = list(frames_of(copy, payload_policy="full"))
    whole = [f for f in items if isinstance(f, Frame) and not f.flags & FrameFlags.TRUNCATED]
    clean = [f for f in whole if not f.flags & (FrameFlags.PAYLOAD_REMOVED | FrameFlags.REDACTED)]
    assert len(whole) > len(true) * 0.4
    assert all((f.client_port, f.direction, f.frame) in true for f in clean)
    partners = {f.exchange_id: f for f in clean if f.direction == "request"}
    for answer in clean:
        if answer.direction == "response" and answer.exchange_id in partners:
            asked = true[answer.client_port, "request", partners[answer.exchange_id].frame]
            assert true[answer.client_port, "response", answer.frame].exchange_id == asked.exchange_id


@pytest.mark.parametrize("inner", ["kafka in mongodb", "mongodb in kafka"])
@pytest.mark.parametrize("begin", [0, 4, 5, 9, 20])
def test_one_protocol_inside_the_other_is_not_taken_for_it(inner, begin, tmp_path):
    """Whole messages of one are in the payload of the other, and the capture may begin anywhere."""
    flow = Flow().open()
    for number in range(1, 15):
        kafka = b"".join(request(n, client_id=b"app") for n in range(1, 6))
        mongodb = b"".join(command({"find": "orders", "$db": "shop"}, request_id=n) for n in range(1, 6))
        if inner == "kafka in mongodb":
            flow.send(0, command({"insert": "c", "blob": kafka, "$db": "x"}, request_id=number), 100)
            flow.send(1, reply({"ok": 1.0, "blob": kafka}, number, 100 + number), 100)
        else:
            body = b"\xff\xff\xff\xff" + len(mongodb).to_bytes(4, "big")
            flow.send(0, request(number, key=36, version=0, body=len(mongodb).to_bytes(4, "big") + mongodb), 100)
            flow.send(1, response(number, b"\0\0\xff\xff" + body[4:] + mongodb), 100)
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(flow.packets[begin:]))
    found = [item for item in frames_of(path) if isinstance(item, Frame)]
    assert {frame.protocol for frame in found} == {inner.split(" in ")[1]}


def inserts(size: int, count: int) -> list[tuple[bytes, bytes]]:
    """Requests of about ``size`` bytes, each with its answer."""
    noise = random.Random(size)
    talk = []
    for number in range(1, count + 1):
        documents = sequence("documents", *({"blob": noise.randbytes(900)} for _ in range(size // 900)))
        talk.append((command({"insert": "orders", "$db": "shop"}, documents, request_id=number),
                     reply({"n": 1, "ok": 1.0}, number, 100 + number)))  # fmt: skip
    return talk


@pytest.mark.parametrize("size", [5_000, 30_000, 60_000, 75_000, 150_000])
def test_joined_in_the_middle_of_a_message_of_any_size(size, tmp_path):
    """Only the message that the capture has the end of is lost."""
    flow = Flow()
    for number, (asked, answered) in enumerate(inserts(size, 6)):
        flow.send(0, asked[700 * (not number) :]).send(1, answered)
    found = [item for item in frames_of(flow.write(tmp_path / "capture.pcap")) if isinstance(item, Frame)]
    assert [frame.correlation_id for frame in found if frame.direction == "request"] == [2, 3, 4, 5, 6]
    assert {frame.reply_to for frame in found if frame.direction == "response"} >= {2, 3, 4, 5, 6}


@pytest.mark.parametrize("size", [900, 5_000, 75_000])
def test_large_messages_that_something_else_carries_are_not_taken_for_a_stream(size):
    """They fill segments from any byte on, and now and then one begins with a segment."""
    carried = b"".join(b"a line of a log\n" + asked for asked, _ in inserts(size, 200_000 // size))
    mongodb = protocols()["mongodb"]
    for at in (16, *range(0, 1460, 97)):
        window = carried[at : at + 65_000]
        assert mongodb.recognise(b"a log\n" + window, b"", range(0, len(window), 1460)) == 0
        assert mongodb.recognise(b"?" * 1460 + window, b"", range(0, len(window), 1460)) == 0


def plant(path: Path) -> Path:
    """A capture of each message with a secret and an empty other half, plain and compressed, on one connection."""
    talks = [(direction, data) for direction, plain in PAYLOAD.values() for data in variants(plain).values()]
    talks += [(d, data) for d, plain, flags in CREDENTIALS.values() if not flags for data in variants(plain).values()]
    flow = Flow().open().send(0, command({"ping": 1}, request_id=7)).send(1, reply({"ok": 1}, 7))
    for direction, data in talks:
        flow.send(0, data if direction == "request" else command({"ping": 1}, request_id=7))
        flow.send(1, data if direction == "response" else reply({"ok": 1}, 7))
    return flow.close().write(path)


class TestSecrets:
    @pytest.fixture
    def capture(self, tmp_path: Path) -> Path:
        return plant(tmp_path / "planted.pcap")

    @pytest.mark.parametrize("policy", POLICIES)
    def test_do_not_land(self, capture, tmp_path, policy):
        landing = tmp_path / "landing"
        code, output = run("capture", "read", capture, "--landing", landing, "--payload", policy, "--json")
        assert code == 0, output
        assert json.loads(output)["connections"] == {"mongodb": 1}
        assert seen_in(output, TRACES) == []
        found = seen_in_files(landing, TRACES)
        assert bool(found) == (policy == "full")

    def test_credentials_do_not_land_under_full(self, tmp_path):
        flow = Flow().open().send(0, command({"ping": 1}, request_id=7)).send(1, reply({"ok": 1}, 7))
        for direction, plain, flags in CREDENTIALS.values():
            for data in variants(plain).values():
                if not flags:
                    flow.send(0, data if direction == "request" else command({"ping": 1}, request_id=7))
                    flow.send(1, data if direction == "response" else reply({"ok": 1}, 7))
        for asked in ({"saslStart": 1}, {"getnonce": 1}, {"find": "system.users"}):
            flow.send(0, command(asked, request_id=7)).send(1, reply({"anything": SECRET.decode(), "ok": 1}, 7))
        flow.close().write(tmp_path / "planted.pcap")
        landing = tmp_path / "landing"
        for policy in ("full", *HIDING):
            code, output = run(
                "capture", "read", tmp_path / "planted.pcap", "--landing", landing / policy, "--payload", policy
            )
            assert code == 0, output
            assert seen_in_files(landing / policy, TRACES) == []

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_are_not_shown_by_decode(self, capture, options):
        code, output = run("decode", capture, *options)
        assert code == 0, output
        assert len(output.splitlines()) > 100
        assert seen_in(output, TRACES) == []


def test_decode_shows_both_halves_of_a_command():
    code, output = run("decode", HERE / "zstd.pcap", "--json", "--api", "find")
    assert code == 0
    lines = [json.loads(line) for line in output.splitlines()]
    asked, answered = lines[:2]
    assert (asked["protocol"], asked["api_key"], asked["api_name"], asked["direction"]) == (
        "mongodb", 2012, "find", "request",
    )  # fmt: skip
    assert answered["direction"] == "response"
    assert answered["reply_to"] == asked["correlation_id"] == asked["header"]["requestID"]
    assert answered["latency_us"] > 0
