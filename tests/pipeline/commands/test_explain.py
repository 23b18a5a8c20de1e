"""``wirelake explain`` in a terminal: what it accepts, what it prints, and that no line is broken."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import pytest

from pipeline.cli import main
from tests.decoder.explain.test_paste import DUMPS
from tests.decoder.kafka.encode import request, response
from tests.decoder.kafka.explain.test_advice import metadata
from tests.decoder.mongodb.build import command, compressed, sequence
from tests.paths import CAPTURES


@pytest.fixture
def run(capsys, monkeypatch):
    def run(*arguments: str, columns: int | None = None) -> str:
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        else:
            monkeypatch.delenv("COLUMNS", raising=False)
        monkeypatch.setattr("sys.argv", ["wirelake", *arguments])
        with suppress(SystemExit):
            main()
        captured = capsys.readouterr()
        return captured.out + captured.err

    return run


def test_a_wrong_length_prefix(run):
    out = run("explain", "--hex", (struct.pack(">i", 28) + metadata(b"\3", name=b"t1", client=b"me")).hex())
    assert "Metadata v12 request, 37 bytes, behind a length prefix: ok" in out
    assert "the length prefix (00 00 00 1c) says 28 bytes, but 37 follow" in out
    assert "its prefix must be 00 00 00 25" in out


def test_a_wrong_length_of_a_topic_name(run):
    frame = metadata(b"\x0d")
    out = run("explain", "--hex", (struct.pack(">i", len(frame)) + frame).hex(" "))
    assert "stopped at byte 31 (0x0023 of what was pasted) in topics[0].name: compact string declares a length" in out
    assert "says 12 bytes, written one larger as compact lengths are; 10 bytes follow it" in out
    assert "With 6 instead of 12 as the length of topics[0].name (07 instead of 0d at byte 31)" in out
    dump = [line for line in out.splitlines() if line.startswith("  0020")]
    mark = out.splitlines()[out.splitlines().index(dump[0]) + 1]
    assert dump[0][mark.index("^") :].startswith("0d")


@pytest.mark.parametrize("dump", DUMPS)
def test_every_kind_of_dump(run, dump):
    assert "'orders'" in run("explain", "--hex", dump(metadata(b"\7")))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal(run, columns):
    for number in ("45", "60", "90"):
        out = run("explain", str(CAPTURES / "stuck_commit.pcap"), "--frame", number, columns=columns)
        assert all(len(line) <= columns for line in out.splitlines()), out
    out = run("explain", "--hex", metadata(b"\xc8\x07").hex(), columns=columns)
    assert all(len(line) <= max(columns, 76) for line in out.splitlines()), out


def test_messages_inside_bytes_are_part_of_the_tree(run):
    subscription = struct.pack(">hih", 0, 1, 6) + b"orders" + struct.pack(">i", -1) + b"\1\2"
    protocols = [{"name": "range", "metadata": subscription}]
    raw = request(11, 0, {"protocolType": "consumer", "protocols": protocols})
    lines = [json.loads(line) for line in run("explain", "--hex", raw.hex(), "--json").splitlines()]
    at = raw.index(subscription)
    shown = [(one["start"] - at, one["end"] - at, one["name"], one["type"], one["value"]) for one in lines[-6:]]
    assert shown == [
        (0, 20, "ConsumerProtocolSubscription v0", "message", "ok"),
        (0, 2, "version", "int16", "0"),
        (2, 14, "topics", "array", "1 element"),
        (6, 14, "[0]", "string", "'orders'"),
        (14, 18, "userData", "bytes", "null"),
        (18, 20, "(further bytes)", "raw", "2 bytes, of a newer version"),
    ]
    assert "ConsumerProtocolSubscription v0 (ok)" in run("explain", "--hex", raw.hex())


def test_a_broken_message_inside_bytes_is_shown_with_its_place(run):
    protocols = [{"name": "range", "metadata": struct.pack(">hi", 0, 99)}]
    raw = request(11, 0, {"protocolType": "consumer", "protocols": protocols})
    out = run("explain", "--hex", raw.hex())
    assert "ConsumerProtocolSubscription v0 (malformed)" in out
    assert "✗ length_overrun" in out
    assert "stopped" not in out


class TestResponses:
    RAW = response(3, 12, {"brokers": [{"nodeId": 1, "host": "b1", "port": 9092}], "topics": [{"name": "orders"}]})

    def test_by_key_or_name(self, run):
        for api in ("3", "Metadata", "metadata"):
            out = run(
                "explain", "--hex", self.RAW.hex(), "--direction", "response", "--api-key", api, "--api-version", "12"
            )  # fmt: skip
            assert "Metadata v12 response" in out
            assert "'orders'" in out

    @pytest.mark.parametrize("prefix", [b"", struct.pack(">i", len(RAW))])
    def test_without_one_those_that_fit_are_named(self, run, prefix):
        out = run("explain", "--hex", (prefix + self.RAW).hex(), "--direction", "response")
        assert "add --api-key and --api-version of its request" in out
        assert "--api-key 3 --api-version 12" in out

    def test_nothing_fits(self, run):
        assert "No known response fits" in run("explain", "--hex", "ff" * 40, "--direction", "response")

    def test_an_unknown_name(self, run):
        for name in ("Nope", "²", "--5", "", "1" * 5000):
            out = run("explain", "--hex", "00", "--direction", "response", f"--api-key={name}", "--api-version", "1")
            assert f"no Kafka api is called {name!r}" in out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--frame", "3", "--hex", "00"), "--frame and --hex exclude each other"),
        (("--frame", "3", "--follow-offset", "t", "2", "24"), "--frame and --follow-offset exclude each other"),
        (("--frame", "3", "--direction", "request"), "--direction needs --hex, and says nothing of --frame"),
        (("--hex", "00"), "FILE is of a capture, and says nothing of the bytes of --hex"),
        (("--exchange", "--follow-offset", "t", "2", "24"), "--exchange needs --frame"),
        ((), "name a capture and --frame N or --follow-offset"),
    ],
)
def test_what_would_be_ignored_is_refused(run, options, told):
    out = run("explain", str(CAPTURES / "stuck_commit.pcap"), *options)
    assert out.startswith("error: ")
    assert told in out


def test_standard_input_is_closed(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert "error: --hex -: standard input is closed" in run("explain", "--hex", "-")


def test_what_is_no_bytes(run):
    assert "--hex: 'h' is no hex digit" in run("explain", "--hex", "hello, world!")


FIND = {"find": "orders", "filter": {"total": 7}, "$db": "shop"}


def damaged_find() -> tuple[bytes, int]:
    """A length inside the command that is too large, and where it is."""
    data = bytearray(command(FIND))
    at = data.index(b"filter\0") + len(b"filter\0")
    data[at] = 99
    return bytes(data), at


@pytest.mark.parametrize("dump", DUMPS)
def test_a_mongodb_message_is_known_by_its_bytes(run, dump):
    out = run("explain", "--hex", dump(command(FIND)))
    assert f"find request, {len(command(FIND))} bytes: ok" in out
    assert '"orders"' in out
    assert out == run("explain", "--hex", dump(command(FIND)), "--protocol", "mongodb")


def test_no_name_of_a_message_steers_the_terminal(run):
    document = {"find\x1b[31m\nX": "orders", "filter": {"k\x1b]0;y\x07\nz": 7, "v": "\x1b[2J"}, "$db": "shop"}
    whole, broken = (run("explain", "--hex", data.hex()) for data in (command(document), command(document)[:-1]))
    assert all(line.isprintable() for line in (whole + broken).splitlines())
    assert whole.startswith("find\\x1b[31m\\nX request, ")
    assert "k\\x1b]0;y\\x07\\nz" in whole


def test_the_byte_where_a_mongodb_message_stops_making_sense(run):
    data, at = damaged_find()
    out = run("explain", "--hex", data.hex())
    assert f"stopped at byte {at}: a document declares 99 bytes" in out
    row = next(line for line in out.splitlines() if line.startswith(f"  {at // 16 * 16:04x}"))
    mark = out.splitlines()[out.splitlines().index(row) + 1]
    assert row[mark.index("^") :].startswith("63")


def test_a_compressed_mongodb_message_is_shown_with_what_is_inside(run):
    data, at = damaged_find()
    out = run("explain", "--hex", compressed(data, "zlib").hex())
    assert "stopped at byte 25: a document declares 99 bytes" in out
    assert f"Uncompressed, as if sent by itself, {len(data)} bytes: malformed" in out
    assert f"stopped at byte {at}: a document declares 99 bytes" in out
    lines = [
        json.loads(line) for line in run("explain", "--hex", compressed(data, "zlib").hex(), "--json").splitlines()
    ]
    assert [one["start"] for one in lines if one["error"]] == [25, at]
    assert {one["name"] for one in lines if one.get("inside")} >= {"messageLength", "find"}


def test_each_byte_of_a_mongodb_message_is_in_a_field(run):
    data = command(FIND, sequence("documents", {"_id": 1}, {"_id": 2}))
    lines = [json.loads(line) for line in run("explain", "--hex", data.hex(), "--json").splitlines()]
    top = [(one["start"], one["end"]) for one in lines if one["depth"] == 0]
    assert [start for start, _ in top[1:]] == [end for _, end in top[:-1]]
    assert (top[0][0], top[-1][1]) == (0, len(data))


@pytest.mark.parametrize(("number", "name"), [("5", "insert"), ("6", "insert")])
def test_a_mongodb_message_of_a_capture(run, number, name):
    out = run("explain", str(CAPTURES / "mongodb" / "plain.pcap"), "--frame", number)
    assert out.startswith(name) or "response" in out.splitlines()[0]
    assert "messageLength" in out
    assert "stopped at" not in out


def test_what_follows_a_mongodb_message_is_reported_and_a_wrong_protocol_refused(run):
    assert "bytes follow the message that the header announces" in run("explain", "--hex", (command(FIND) * 2).hex())
    assert "--protocol is kafka or mongodb" in run("explain", "--hex", command(FIND).hex(), "--protocol", "mongo")
    assert "find request" not in run("explain", "--hex", command(FIND).hex(), "--protocol", "kafka")
