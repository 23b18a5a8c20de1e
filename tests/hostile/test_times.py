"""Times that cannot be, and clocks that are set while packets are captured: nothing is lost, all is reported."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import bson
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from decoder import Codec
from decoder.kafka.kernel import bodies as kernel
from decoder.model import MAX_TS_US, MIN_TS_US, Frame, FrameFlags, Gap
from pipeline.capture.fast_path.block import block_of, read_blocks
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs import reading
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import MAX_STEPS, BlockAgent
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.sessions.pending_requests import HOLD_US
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.clock import MIXED_US, SILENT_US
from pipeline.capture.tcp.tracker import IDLE_US, SWEEP_EVERY
from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.streaming.job import run_stream
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record
from tests.decoder.kafka.kernel import asked as kafka_kernel
from tests.decoder.mongodb import build
from tests.decoder.mongodb.kernel import asked as mongodb_kernel
from tests.pipeline.capture.fast_path.test_lanes import by_blocks, one_by_one
from tests.pipeline.capture.wire import T0, Flow, enhanced, interface, pcapng, prefixed, request, response, section

CLAMPED = int(FrameFlags.TIME_CLAMPED)
SECOND, HOUR, YEAR = 1_000_000, 3_600_000_000, 365 * 86_400_000_000
YEAR_1960, YEAR_2199, YEAR_30_000 = -10 * YEAR, 229 * YEAR, 28_030 * YEAR
LONGEST = (-(2**63), 2**63 - 1)


def talk(flow: Flow, exchanges: int, first: int = 0) -> Flow:
    for number in range(first, first + exchanges):
        flow.send(0, request(number)).send(1, response(number))
    return flow


def from_number(packets: Sequence[Packet], number: int, by: int) -> list[Packet]:
    """The clock is set by so much (µs) before a packet."""
    return [*packets[:number], *(packet._replace(ts_us=packet.ts_us + by) for packet in packets[number:])]


def file_with_times(path: Path, packets: Sequence[Packet], times: dict[int, int]) -> Path:
    """A pcapng in which some packets, by number, have another time; those before 1970 by an interface's offset."""
    content = section() + interface(1) + interface(1, tsoffset=YEAR_1960 // SECOND)
    for number, packet in enumerate(packets):
        ts = times.get(number, packet.ts_us)
        before = ts < 0
        content += enhanced(packet, number=int(before), ticks=ts - YEAR_1960 if before else ts)
    path.write_bytes(content)
    return path


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Five exchanges: the first request is of 1960, the answer to the third of the year 30,000, the last of 2199."""
    packets = talk(Flow().open(), 5).packets
    return file_with_times(
        tmp_path / "odd.pcapng", packets, {3: YEAR_1960, 8: YEAR_30_000, 11: YEAR_2199, 12: YEAR_2199}
    )


def rows_of(agent: Agent, packets: Sequence[Packet]) -> list[Frame | Gap]:
    return [*(item for packet in packets for item in agent.take(packet)), *agent.finish()]


def frames_in(items: Sequence[Frame | Gap]) -> list[Frame]:
    return [item for item in items if isinstance(item, Frame)]


def content(items: Sequence[Frame | Gap]) -> Counter[tuple[object, ...]]:
    """All but the times."""
    return Counter((f.connection_id, f.direction, f.seq, f.exchange_id, f.frame, f.flags) for f in frames_in(items))


def test_every_reader_takes_an_impossible_time_for_the_nearest_end(odd: Path) -> None:
    times = [packet.ts_us for packet in read_packets(str(odd))]
    assert [times[3], times[8], times[11]] == [MIN_TS_US, MAX_TS_US, YEAR_2199]
    assert [int(ts) for block in read_blocks(str(odd)) for ts in block.ts] == times


def test_the_frames_are_flagged_and_the_packets_counted(odd: Path) -> None:
    packets = list(read_packets(str(odd)))
    items, stats = one_by_one(packets, "full")
    flagged = {(f.direction, f.seq) for f in frames_in(items) if f.flags & CLAMPED}
    assert flagged == {("request", 0), ("response", 2)}
    assert (len(items), stats.notices["times_clamped"]) == (10, 2)
    assert Counter(f.flags & ~CLAMPED for f in frames_in(items)) == {0: 10}


def test_a_frame_is_flagged_by_its_last_byte_too() -> None:
    flow = talk(Flow().open(), 1)
    begun = len(flow.packets)
    flow.send(0, request(1), mss=10)
    flow.packets[begun + 1 :] = [packet._replace(ts_us=MAX_TS_US) for packet in flow.packets[begun + 1 :]]
    frame = frames_in(one_by_one(flow.packets, "full")[0])[-1]
    assert (frame.ts < MAX_TS_US, frame.ts_end, frame.flags & CLAMPED) == (True, MAX_TS_US, CLAMPED)


@pytest.mark.parametrize("size", [1, 5, 100])
def test_blocks_give_the_same_rows(odd: Path, size: int) -> None:
    packets = list(read_packets(str(odd)))
    packets += talk(Flow(client=("10.0.0.1", 40001), ts=T0 + SECOND).open(), 40).packets
    packets += [packet._replace(ts_us=MAX_TS_US) for packet in talk(Flow(client=("10.0.0.1", 40002)).open(), 9).packets]
    expected, stats = one_by_one(packets, "full")
    rows, counted, _ = by_blocks(packets, "full", size)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()


def test_lanes_flag_as_well() -> None:
    flow = talk(Flow().open(), 60)
    packets = [
        packet._replace(ts_us=MAX_TS_US) if number >= 63 else packet for number, packet in enumerate(flow.packets)
    ]
    rows, _, in_lanes = by_blocks(packets, "full", 30)
    assert in_lanes > 60
    assert Counter(rows) == Counter(one_by_one(packets, "full")[0])
    assert sum(bool(f.flags & CLAMPED) for f in frames_in(rows)) == 60


def test_the_landing_zone_has_the_days_and_both_ways_of_reading_agree(
    odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = read_capture([odd], tmp_path / "small")
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    read_capture([odd], tmp_path / "large")
    days = {"date=1970-01-01", "date=2023-11-14", "date=2198-11-06", "date=2199-12-31"}
    assert {path.parent.name for path in (tmp_path / "small").glob("date=*/*")} == days
    assert stats.notices["times_clamped"] == 2
    small, large = (
        sorted((row for path in (tmp_path / name).glob("date=*/*") for row in pq.ParquetFile(path).read().to_pylist()),
               key=repr)
        for name in ("small", "large")
    )  # fmt: skip
    assert small == large
    assert len(small) == 10


def test_decode_and_explain_show_them(odd: Path) -> None:
    done = CliRunner().invoke(app, ["decode", str(odd), "--json"], catch_exceptions=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 10
    assert lines[0]["ts"] == "1970-01-01T00:00:00.000000Z"
    assert lines[-1]["ts"] == "2199-12-31T23:59:59.999999Z"
    assert {line["status"] for line in lines} == {"ok"}
    assert "2 packets with a time outside of 1970 to 2199" in done.stderr
    for number in ("1", "10"):
        shown = CliRunner().invoke(app, ["explain", str(odd), "--frame", number], catch_exceptions=False)
        assert shown.exit_code == 0
        assert "ApiVersions" in shown.stdout


def two_talks(exchanges: int = 30) -> list[Packet]:
    """Two connections by turns, all in order."""
    flows = [talk(Flow(client=("10.0.0.1", port), ts=T0 + port).open(), exchanges) for port in (40000, 40001)]
    return [packet for pair in zip(*(flow.packets for flow in flows), strict=True) for packet in pair]


STEPS = {
    "an hour back": [(40, -HOUR)],
    "two hours back and on again": [(40, -2 * HOUR), (80, 2 * HOUR)],
    "to next year and back": [(40, YEAR), (45, -YEAR)],
    "one packet of 2199": [(40, YEAR_2199 - T0), (41, T0 - YEAR_2199)],
    "often": [(number, (-1) ** number * HOUR) for number in range(30, 30 + 2 * MAX_STEPS)],
    "from 1971 to now": [(0, YEAR - T0), (40, T0 - YEAR)],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("size", [0, 1, 7, 60, 1000])
def test_a_clock_that_is_set_changes_nothing_but_times(steps: list[tuple[int, int]], size: int) -> None:
    plain = two_talks()
    packets = plain
    for number, by in steps:
        packets = from_number(packets, number, by)
    items, stats = one_by_one(packets, "full") if not size else by_blocks(packets, "full", size)[:2]
    expected, _ = one_by_one(plain, "full")
    if packets[0].ts_us == plain[0].ts_us:  # else the ids of the connections are others
        assert content(items) == content(expected)
    assert len(items) == len(expected) == 120
    assert stats.connections == {"kafka": 2}
    back = [-by for _, by in steps if by < 0 and _]
    assert stats.notices == ({"clock_set_back": len(back)} if back else {})
    assert abs(stats.clock_set_back_us - max(back, default=0)) <= MIXED_US


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize("by", [-3 * HOUR, 3 * HOUR, YEAR, -YEAR])
def test_connections_that_wait_are_not_expired(by: int, size: int) -> None:
    """The clock is set while one is silent, and others continue for long enough to be looked after."""
    idle = talk(Flow().open(), 20)
    busy = talk(Flow(client=("10.0.0.1", 40001), ts=idle.ts).open(), 2 * SWEEP_EVERY)
    idle.ts = busy.ts
    before = len(idle.packets)
    talk(idle, 20, first=20)
    packets = [*idle.packets[:before], *busy.packets, *idle.packets[before:]]
    packets = from_number(packets, before + 100, by)
    stats = one_by_one(packets, "full")[1] if not size else by_blocks(packets, "full", size)[1]
    assert stats.notices["idle_connections_expired"] == 0
    assert (stats.connections, stats.gaps) == ({"kafka": 2}, 0)
    assert stats.requests == {(18, 0): 40 + 2 * SWEEP_EVERY}


def test_silence_after_a_step_still_ends_a_connection() -> None:
    idle = talk(Flow().open(), 2)
    busy = talk(Flow(client=("10.0.0.1", 40001), ts=idle.ts - 5 * HOUR).open(), SWEEP_EVERY)
    step = 4 * IDLE_US // len(busy.packets)
    late = [packet._replace(ts_us=packet.ts_us + number * step) for number, packet in enumerate(busy.packets)]
    stats = one_by_one([*idle.packets, *late], "full")[1]
    assert stats.notices == {"clock_set_back": 1, "idle_connections_expired": 1}


@pytest.mark.parametrize("by", [-2 * HOUR, 2 * HOUR, YEAR])
def test_a_hole_is_not_given_up_because_the_clock_was_set(by: int) -> None:
    """What is sent again soon fills it."""
    flow = talk(Flow().open(), 3)
    flow.send(0, request(3), mss=15).send(0, request(4)).send(0, request(5))
    lost = flow.packets.pop(10)
    filled = [*from_number(flow.packets, 12, by), lost._replace(ts_us=flow.packets[-1].ts_us + by + SECOND)]
    items = rows_of(Agent("a", "full", CaptureStats()), filled)
    assert [type(item) for item in items] == [Frame] * 9


@pytest.mark.parametrize("kind", ["packets", "blocks"])
def test_a_request_is_held_no_longer_than_ever(kind: str) -> None:
    flow = talk(Flow().open(), 40).send(0, request(40))
    number = len(flow.packets)
    flow.send(0, request(41))
    flow.ts += HOLD_US + SECOND
    flow.send(0, request(42))
    packets = from_number(flow.packets, number, -2 * HOUR)
    agent = Agent("a", "full", CaptureStats())
    if kind == "packets":
        items = [item for packet in packets for item in agent.take(packet)]
        assert len(items) == 80 + 2  # all but the last
        return
    blocks = BlockAgent(agent)
    items = [item for at in range(0, len(packets), 30) for item in blocks.take_block(block_of(packets[at : at + 30]))]
    assert sum(item.num_rows if hasattr(item, "num_rows") else 1 for item in items) == 80 + 2


def test_a_pause_that_may_be_one_is_one() -> None:
    """Up to an hour nothing shows that the clock was set."""
    flow = talk(Flow().open(), 2)
    flow.ts += SILENT_US - SECOND
    other = talk(Flow(client=("10.0.0.1", 40001), ts=flow.ts).open(), 2)
    flow.ts = other.ts
    talk(flow, 2, first=2)
    stats = one_by_one(sorted([*flow.packets, *other.packets], key=lambda packet: packet.ts_us), "full")[1]
    assert stats.notices == {"idle_connections_expired": 1}


def test_people_are_warned(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    path.write_bytes(pcapng(from_number(from_number(two_talks(), 40, -2 * HOUR), 60, -90 * SECOND)))
    warning = "the clock was set back 2 times, by up to 2 hours: what spans such a moment has a wrong duration"
    done = CliRunner().invoke(app, ["decode", str(path)], catch_exceptions=False)
    assert f"warning: {warning}" in done.stderr
    done = CliRunner().invoke(
        app, ["capture", "read", str(path), "--landing", str(tmp_path / "landing")], catch_exceptions=False
    )
    assert warning in " ".join(done.stdout.split())
    asked = ["capture", "read", str(path), "--landing", str(tmp_path / "other"), "--json"]
    summary = json.loads(CliRunner().invoke(app, asked, catch_exceptions=False).stdout)
    assert abs(summary["clock_set_back_us"] - 2 * HOUR) < SECOND
    assert summary["notices"] == {"clock_set_back": 2}


TIMES = (*LONGEST, -1, 0, 2**62, -(2**62))


@pytest.mark.parametrize("base", TIMES)
@pytest.mark.parametrize("most", TIMES)
def test_records_of_any_time(base: int, most: int) -> None:
    records = batch([record(b"k", b"v")] * 2, base_timestamp=base, max_timestamp=most)
    partition = {"index": 0, "records": records}
    raw = encode.request(0, 9, {"acks": 1, "topicData": [{"name": "t", "partitionData": [partition]}]})
    message = Codec().decode(raw)
    assert message.status == "ok"
    assert [(b["baseTimestamp"], b["maxTimestamp"]) for b in message.record_batches] == [(base, most)]
    asked = [kafka_kernel.Asked(raw, "request", 0, 9)]
    read = kafka_kernel.read(asked)
    assert read.outcomes[0] != kernel.GIVEN_BACK
    assert not kafka_kernel.differences(asked, read)
    found = Codec().records(raw)
    assert {r.timestamp for p in found.partitions for r in p.records} == {base}


@pytest.mark.parametrize("ms", [*LONGEST, 253_402_300_800_000, 253_402_300_799_999, -1, -62_135_596_800_001])
def test_dates_of_mongodb_beyond_any_calendar(ms: int) -> None:
    date = struct.pack("<q", ms)
    raw = build.command(build.raw(build.element(0x09, date, b"find"), build.element(0x09, date, b"at")))
    message = Codec().decode(raw, protocol="mongodb")
    assert message.status == "ok"
    decoded = message.body["sections"][0]["document"]["at"]["$date"] if "sections" in message.body else None
    as_it_is = {"$numberLong": str(ms)}
    in_words = bson.DatetimeMS(ms)
    assert decoded is None or decoded == as_it_is or -62_135_596_800_000 <= int(in_words) < 253_402_300_800_000
    mongodb_kernel.compare([mongodb_kernel.Asked(raw, "request")])


@pytest.mark.spark
def test_a_lake_of_impossible_times(spark: SparkSession, tmp_path: Path) -> None:
    """No batch fails, every exchange is there, none but the flagged lacks its latency, and no other one expires."""
    producer = Flow(client=("10.0.0.1", 40001), ts=T0 + 50).open()
    for number, ms in enumerate(LONGEST):
        records = batch([record(b"k", b"v")], base_timestamp=ms, max_timestamp=ms, base_offset=number)
        topic = {"name": "t", "partitionData": [{"index": 0, "records": records}]}
        producer.send(0, prefixed(encode.request(0, 9, {"acks": 1, "topicData": [topic]}, correlation_id=number)))
        answer = {"responses": [{"name": "t", "partitionResponses": [{"index": 0, "baseOffset": number}]}]}
        producer.send(1, prefixed(encode.response(0, 9, answer, correlation_id=number)))
    open_one = Flow(client=("10.0.0.1", 40002), ts=T0 + 60).open()
    talk(open_one, 1).send(0, request(1))  # still waits for its answer
    odd = talk(Flow().open(), 5)
    packets = [*odd.packets, *producer.packets, *open_one.packets]
    times = {3: YEAR_1960, 8: YEAR_30_000, 11: YEAR_2199, 12: YEAR_2199 + 7}
    times |= {len(packets) - 1 - back: YEAR_2199 - 100 * back for back in range(len(open_one.packets))}
    read_capture([file_with_times(tmp_path / "x.pcapng", packets, times)], tmp_path / "landing")
    lake = tmp_path / "lake"
    run_stream(tmp_path / "landing", lake, once=True, spark=spark)

    flagged = query(lake, f"SELECT direction, seq, ts FROM bronze.frames WHERE flags & {CLAMPED} <> 0").to_pylist()
    assert {(f["direction"], f["seq"]) for f in flagged} == {("request", 0), ("response", 2)}
    last = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=MAX_TS_US)
    assert {f["ts"].astimezone(timezone.utc) for f in flagged} == {datetime(1970, 1, 1, tzinfo=timezone.utc), last}
    exchanges = query(lake, "SELECT status, latency_us, request_ts, client_port FROM silver.exchanges").to_pylist()
    assert Counter(e["status"] for e in exchanges) == {"paired": 8}
    known = sorted(e["latency_us"] for e in exchanges if e["latency_us"] is not None)
    assert (len(known), known[0], known[-1]) == (6, 7, 100)
    waiting = query(lake, "SELECT client_port FROM silver.pending_exchanges").to_pylist()
    assert waiting == [{"client_port": 40002}]  # what is clamped, months later, does not make it old
    batches = query(lake, "SELECT base_timestamp, max_timestamp FROM silver.record_batches").to_pylist()
    assert {(b["base_timestamp"], b["max_timestamp"]) for b in batches} == {(ms, ms) for ms in LONGEST}
    minutes = query(lake, "SELECT max(max_us) AS most, sum(exchanges) AS all FROM gold.api_latency").to_pylist()
    assert minutes == [{"most": 100, "all": 8}]
