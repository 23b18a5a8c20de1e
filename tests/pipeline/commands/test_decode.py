"""``wirelake decode --records``: one line a record, payload only on demand."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from decoder import Codec
from decoder.kafka.codec.frame_records import PartitionRecords
from decoder.kafka.records.iteration import BatchProblem, Record
from pipeline.commands.messages.decode import decode
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.message_lines import took
from pipeline.commands.messages.messages import Decoded
from pipeline.commands.messages.record_lines import record_line, record_object, records_of
from pipeline.errors import UserError
from tests.decoder.kafka.batches import batch, damaged, record
from tests.decoder.kafka.encode import request
from tests.decoder.kafka.landed import landed
from tests.decoder.mongodb.build import command, reply
from tests.paths import CAPTURES
from tests.pipeline.capture import wire
from tests.pipeline.capture.wire import Flow

STUCK = str(CAPTURES / "stuck_commit.pcap")
OLD = str(CAPTURES / "old_format.pcap")
MONGODB = str(CAPTURES / "mongodb" / "plain.pcap")
app = typer.Typer()
app.command()(decode)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def objects(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


def test_records_of_a_recorded_capture_with_compressed_old_formats() -> None:
    found = objects(OLD, "--records", "--api", "Produce")
    assert found
    assert not any("error_code" in line for line in found)
    assert {line["api_name"] for line in found} == {"Produce"}
    assert all(line["topic"] and line["partition"] >= 0 and line["value_size"] > 0 for line in found)
    assert not any("key" in line or "value" in line or "header_values" in line for line in found)


def test_records_of_a_topic_that_stands_by_its_id_have_its_name() -> None:
    found = objects(STUCK, "--records", "--api", "Fetch")
    assert any(line["topic_id"] for line in found)
    assert {line["topic"] for line in found} == {"payments"}
    lines = run(STUCK, "--records", "--api", "Fetch").splitlines()
    assert len(lines) == len(found)
    assert all(re.match(r" *\d+ payments-\d @\d+ 2026-11-21 04:46:\d\d\.\d{3} key ", line) for line in lines)


def test_a_time_that_no_calendar_has_is_told_as_it_is() -> None:
    frame = landed(request(0, 9, {"topicData": []}), policy="full")
    decoded = Decoded(1, frame, Codec().decode(frame.frame), None)
    item = PartitionRecords("t", None, 0, 0, 0), Record(0, 1 << 60, "CreateTime", 1, 1)
    assert f"@0 {1 << 60} ms key" in record_line(decoded, item, payload=False).plain


def test_payload_only_when_asked_for() -> None:
    found = objects(OLD, "--records", "--payload", "full")
    values = [base64.b64decode(line["value"]) for line in found]
    assert all(len(value) == line["value_size"] for value, line in zip(values, found, strict=True))
    assert sum(b'"number"' in value for value in values) > 500
    assert "number" not in run(OLD, "--records")
    assert '{"number":0' in run(OLD, "--records", "--payload", "full")


def test_payload_without_records_is_a_mistake() -> None:
    with pytest.raises(UserError, match="needs --records"):
        run(OLD, "--payload", "full")


def test_messages_stay_as_they_were_without_the_option() -> None:
    assert all("header" in line and "body" in line for line in objects(OLD))


def test_a_record_and_a_problem_as_json_and_as_text() -> None:
    bad = batch([record(b"k", b"v")], count=2)
    data = batch([record(b"key", None, 0, [(b"trace", b"x"), (b"e\x1b", None)])], producer=(4711, 3, 17)) + bad
    body = {"topicData": [{"name": "orders\x1b[31m", "partitionData": [{"index": 3, "records": data}]}]}
    frame = landed(request(0, 9, body), policy="full")
    decoded = Decoded(5, frame, Codec().decode(frame.frame), None)
    first, second, third = records_of(decoded, Codec(), Describers(), payload=True)
    assert record_object(decoded, first, payload=True) == {
        "frame": 5,
        "ts": "2023-11-14T22:13:20.000000Z",
        "api_name": "Produce",
        "topic": "orders\x1b[31m",
        "topic_id": None,
        "partition": 3,
        "offset": 0,
        "timestamp": 1_700_000_000_000,
        "timestamp_type": "CreateTime",
        "key_size": 3,
        "value_size": None,
        "headers": ["trace", "e\x1b"],
        "sequence": 17,
        "control_type": None,
        "key": "a2V5",
        "value": None,
        "header_values": ["eA==", None],
    }
    assert isinstance(third[1], BatchProblem)
    assert record_object(decoded, third, payload=True)["error_code"] == "record_count"
    for item in (first, second, third):
        assert "\x1b" not in record_line(decoded, item, payload=True).plain
    assert "@0 2023-11-14 22:13:20.000 key 3 B value null" in record_line(decoded, first, payload=False).plain
    assert "record_count at byte" in record_line(decoded, third, payload=False).plain


def kafka(exchanges: int = 30, lost: int | None = None) -> Flow:
    """A connection; the ``lost``-th packet with a request or response is missing."""
    flow = Flow().open()
    for number in range(exchanges):
        flow.send(0, wire.request(number)).send(1, wire.response(number))
    if lost is not None:
        del flow.packets[3 + lost]
    return flow.close()


def other() -> Flow:
    flow = Flow(client=("10.0.0.3", 40000), server=("10.0.0.2", 80)).open()
    return flow.send(0, b"GET / HTTP/1.1\r\n\r\n").close()


@pytest.mark.parametrize("mode", [(), ("--json",), ("--records",), ("--records", "--json")])
class TestWhatWasNotRead:
    def test_losses_and_other_protocols_are_reported_on_standard_error(
        self, tmp_path: Path, mode: tuple[str, ...]
    ) -> None:
        path = tmp_path / "x.pcap"
        path.write_bytes(wire.pcap([*kafka(lost=20).packets, *other().packets]))
        done = CliRunner().invoke(app, [str(path), *mode], catch_exceptions=False)
        assert done.exit_code == 0
        lost = len(wire.request(0))
        assert done.stderr.splitlines() == [
            "warning: not read: 1 connection, other protocols (HTTP with 10.0.0.2:80: 1)",
            f"warning: lost: {lost} bytes in 1 gap",
        ]

    def test_several_captures_are_reported_together(self, tmp_path: Path, mode: tuple[str, ...]) -> None:
        flows = kafka(), other(), other()
        paths = [str(flow.write(tmp_path / f"{number}.pcap")) for number, flow in enumerate(flows)]
        done = CliRunner().invoke(app, [*paths, *mode], catch_exceptions=False)
        assert done.stderr == "warning: not read: 2 connections, other protocols (HTTP with 10.0.0.2:80: 2)\n"

    def test_nothing_recognised_is_an_error(self, tmp_path: Path, mode: tuple[str, ...]) -> None:
        done = CliRunner().invoke(app, [str(other().write(tmp_path / "x.pcap")), *mode])
        assert isinstance(done.exception, UserError)
        assert "no Kafka or MongoDB message found" in str(done.exception)
        assert "1 connection, other protocols" in done.stderr


class TestApi:
    def names(self, *arguments: str) -> set[str | None]:
        return {line["api_name"] for line in objects(*arguments)}

    @pytest.mark.parametrize("api", ["Fetch", "fetch", "FETCH", "1"])
    def test_by_name_in_any_case_or_key(self, api: str) -> None:
        assert self.names(OLD, MONGODB, "--api", api) == {"Fetch"}

    @pytest.mark.parametrize(("api", "name"), [("find", "find"), ("FIND", "find"), ("op_query", "OP_QUERY")])
    def test_of_mongodb(self, api: str, name: str) -> None:
        assert self.names(OLD, MONGODB, "--api", api) == {name}

    def test_a_key_of_kafka_is_no_opcode(self) -> None:
        assert {line["protocol"] for line in objects(OLD, MONGODB, "--api", "2013")} == {"mongodb"}
        assert "OP_REPLY" in self.names(MONGODB)
        done = CliRunner().invoke(app, [MONGODB, "--api", "1"], catch_exceptions=False)
        assert (done.exit_code, done.stdout) == (0, "")
        assert "warning: none of the 64 messages is of this api" in done.stderr

    @pytest.mark.parametrize("mode", [(), ("--json",)])
    def test_an_unknown_name_is_a_mistake(self, mode: tuple[str, ...]) -> None:
        with pytest.raises(UserError, match=r"no Kafka api is called so: did you mean Fetch\?"):
            run(OLD, "--api", "Fetc", *mode)
        for api in ("²", "", "Fetch v4"):
            with pytest.raises(UserError, match="give a name or a key"):
                run("does not matter", "--api", api, *mode)


def test_a_response_captured_before_its_request_follows_it(tmp_path: Path) -> None:
    flow = kafka(3)
    packets = flow.packets
    request, response = packets[5], packets[6]
    packets[5:7] = response._replace(ts_us=request.ts_us), request._replace(ts_us=response.ts_us)
    lines = objects(str(flow.write(tmp_path / "x.pcap")))
    assert [(line["direction"], line["correlation_id"]) for line in lines] == [
        (direction, number) for number in range(3) for direction in ("request", "response")
    ]
    assert [line["latency_us"] for line in lines] == [None, 100, None, 0, None, 100]


def test_no_name_of_a_message_steers_the_terminal(tmp_path: Path) -> None:
    flow = Flow().open()
    for name in ("hello", "ev\x1b[31mil\n\x1b]0;x\x07"):
        flow.send(0, command({name: 1, "$db": "admin"})).send(1, reply({"ok": 1.0}))
    lines = run(str(flow.close().write(tmp_path / "x.pcap"))).splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
    assert "ev\\x1b[31mil\\n" in lines[2]


def test_what_the_policy_removed_is_reported() -> None:
    data = damaged(batch([record(b"k", b"v")]))
    body = {"topicData": [{"name": "t", "partitionData": [{"index": 3, "records": data}]}]}
    frame = landed(request(0, 9, body), flags=32)
    decoded = Decoded(1, frame, Codec().decode(frame.frame), None)
    (item,) = records_of(decoded, Codec(), Describers(), payload=False)
    assert record_object(decoded, item, payload=False)["error_code"] == "payload_removed"


@pytest.mark.parametrize(
    ("latency_us", "service_us", "shown"),
    [
        (2_000_900, 900, "2000.9 ms (0.9 ms after its turn came)"),
        (2_000_900, 2_000_900, "2000.9 ms"),
        (2_000_900, None, "2000.9 ms"),
        (2_900, 900, "2.9 ms"),
    ],
)
def test_a_response_that_waited_for_its_turn_says_how_long_it_took_then(
    latency_us: int, service_us: int | None, shown: str
) -> None:
    assert took(latency_us, service_us, is_short=False) == shown
