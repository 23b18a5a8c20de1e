"""Packets taken by the block give the rows that they give one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decoder.field_hash import FieldHash
from decoder.model import Frame, FrameFlags, Gap, PayloadPolicy
from pipeline.capture.fast_path import lanes
from pipeline.capture.fast_path.block import block_of, read_blocks
from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.packets.packet import DamagedCaptureError, Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs import reading, run
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.stats import CaptureStats
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import LINKS, Flow, request, response

pytestmark = pytest.mark.slow

SAMPLES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
POLICIES: tuple[PayloadPolicy, ...] = ("lengths", "full", "hash", "none")
HASH = FieldHash(bytes(range(32)))


@cache
def packets(sample: str) -> tuple[Packet, ...]:
    return tuple(read_packets(str(CAPTURES / f"{sample}.pcap")))


def one_by_one(given: Iterable[Packet], policy: PayloadPolicy) -> tuple[list[Frame | Gap], CaptureStats]:
    agent = Agent("a", policy, CaptureStats(), HASH)
    items = [item for packet in given for item in agent.take(packet)]
    return [*items, *agent.finish()], agent.stats


def by_blocks(given: Sequence[Packet], policy: PayloadPolicy, size: int) -> tuple[list[Frame | Gap], CaptureStats, int]:
    agent = BlockAgent(Agent("a", policy, CaptureStats(), HASH))
    blocks = [block_of(given[start : start + size]) for start in range(0, len(given), size)]
    items: list[Frame | Gap | pa.Table] = [item for block in blocks for item in agent.take_block(block)]
    items += agent.finish()
    in_lanes = sum(item.num_rows for item in items if isinstance(item, pa.Table))
    return rows_of(items), agent.stats, in_lanes


def rows_of(items: Iterable[Frame | Gap | pa.Table]) -> list[Frame | Gap]:
    return [row for item in items for row in (frames(item) if isinstance(item, pa.Table) else [item])]


def frames(table: pa.Table) -> list[Frame]:
    times = {name: table[name].cast(pa.int64()) for name in ("ts", "ts_end")}
    for name, column in times.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return [Frame(**row) for row in table.to_pylist()]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_same_rows_under_every_policy(sample, policy):
    given = packets(sample)
    expected, stats = one_by_one(given, policy)
    rows, counted, in_lanes = by_blocks(given, policy, 60)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()
    assert in_lanes


@pytest.mark.parametrize(("size", "most"), [(1, 1500), (7, 1500), (500, None), (100_000, None)])
def test_the_same_rows_whatever_the_blocks(size, most):
    given = packets("stuck_commit")[:most]
    rows, _, in_lanes = by_blocks(given, "lengths", size)
    assert Counter(rows) == Counter(one_by_one(given, "lengths")[0])
    assert (in_lanes > len(given) / 5) == (size < 100_000)


@pytest.mark.parametrize("client_id", [b"app", "zähler".encode("latin-1"), b"app\x01", b"x" * 301])
@pytest.mark.parametrize("lost", [None, 20, 21])
def test_the_same_rows_of_clients_with_odd_ids(client_id, lost):
    flow = Flow().open()
    for number in range(40):
        flow.send(0, request(number, client_id=client_id)).send(1, response(number))
    given = [packet for number, packet in enumerate(flow.close().packets) if number != lost]
    expected, stats = one_by_one(given, "lengths")
    found = [row for row in expected if isinstance(row, Frame)]
    assert len(found) == 80 - (lost is not None)
    assert {frame.api_key for frame in found if not frame.flags & FrameFlags.ORPHAN_RESPONSE} == {18}
    rows, counted, _ = by_blocks(given, "lengths", 7)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()


@pytest.mark.parametrize("link", [*LINKS, None])
def test_the_same_rows_on_every_link_layer(link):
    """None: bytes that begin as an IP packet does, of a link type that nobody reads."""
    flow = Flow(link=link or "raw").open()
    for number in range(40):
        flow.send(0, request(number)).send(1, response(number))
    given = flow.close().packets
    if link is None:
        given = [packet._replace(linktype=147) for packet in given]
    expected, stats = one_by_one(given, "lengths")
    assert len(expected) == (80 if link else 0)
    rows, counted, _ = by_blocks(given, "lengths", 7)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()


@pytest.mark.parametrize("seed", range(12))
def test_the_same_rows_of_harmed_captures(seed):
    """Packets lost, sent twice with the same and with other bytes, cut, and in another order."""
    source = random.Random(seed)
    given: list[Packet] = []
    for packet in packets(SAMPLES[seed % len(SAMPLES)]):
        chance = source.random()
        if chance < 0.004:
            continue
        given.append(packet)
        if chance > 0.992:
            given.append(packet)
        elif chance > 0.99:
            given.append(packet._replace(data=packet.data[:-1] + bytes([packet.data[-1] ^ 1])))
        elif chance > 0.988:
            given[-1] = packet._replace(data=packet.data[: source.randrange(len(packet.data))])
        elif chance > 0.984 and len(given) > 3:
            given.insert(-3, given.pop())
    expected, stats = one_by_one(given, "lengths")
    rows, counted, _ = by_blocks(given, "lengths", 40)
    assert Counter(map(without_time, rows)) == Counter(map(without_time, expected))
    assert counted.as_dict() == stats.as_dict()


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_same_rows_as_they_come(monkeypatch, tmp_path, sample):
    """From a pipe packets come one by one; from some number on those that are there are taken together."""
    source = random.Random(sample)
    monkeypatch.setattr(run, "MANY_PACKETS", source.randrange(1, 60))
    with run.CaptureRun(open_store(tmp_path / "piped")) as capture:
        for packet in packets(sample):
            capture.take(packet)
            if source.random() < 0.02:
                capture.wait()
        capture.finish()
    stats = read_capture([CAPTURES / f"{sample}.pcap"], tmp_path / "file")
    assert rows_in(tmp_path / "piped") == rows_in(tmp_path / "file")
    assert isinstance(capture.agent, BlockAgent)
    assert (capture.stats.frames, capture.stats.requests) == (stats.frames, stats.requests)


def test_many_bytes_are_read_by_blocks_as_many_packets_are(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "MANY_BYTES", 5_000)
    with run.CaptureRun(open_store(tmp_path)) as capture:
        for packet in packets(SAMPLES[0])[:200]:
            capture.take(packet)
        assert isinstance(capture.agent, BlockAgent)


@pytest.mark.parametrize("seed", range(4))
def test_another_process_goes_on_after_blocks(seed):
    source = random.Random(seed)
    given = packets(SAMPLES[seed % len(SAMPLES)])
    cut = source.randrange(100, len(given))
    first, second = BlockAgent(Agent("a", "lengths", CaptureStats())), Agent("a", "lengths", CaptureStats())
    rows = [row for at in range(0, cut, 40) for row in rows_of(first.take_packets(given[at : min(at + 40, cut)]))]
    rows += first.release()
    state = first.state()
    second.resume(state)
    for packet in given[:cut]:
        rows += second.again(packet) if packet.ts_us >= state.needs_from else ()
    rows += [row for packet in given[cut:] for row in second.take(packet)]
    rows += second.finish()
    assert set(map(answered_or_not, rows)) == set(map(answered_or_not, one_by_one(given, "lengths")[0]))


def answered_or_not(row: Frame | Gap) -> Frame | Gap:
    """That a request was never answered is not known to who passes it on before its connection closes."""
    return replace(row, flags=row.flags & ~FrameFlags.UNANSWERED) if isinstance(row, Frame) else row


def without_time(item: Frame | Gap) -> Frame | Gap:
    """A gap is reported when it was waited for long enough, which is looked at now and then."""
    return replace(item, ts=0) if isinstance(item, Gap) else item


def test_a_large_file_lands_the_same(tmp_path, monkeypatch):
    path = CAPTURES / "stuck_commit.pcap"
    read_capture([path], tmp_path / "small")
    monkeypatch.setattr(reading, "LARGE_BYTES", 1)
    stats = read_capture([path], tmp_path / "large")
    assert stats.frames["kafka"] == 2661
    assert rows_in(tmp_path / "large") == rows_in(tmp_path / "small")


def rows_in(landing: Path) -> list[dict[str, object]]:
    rows = [row for path in landing.glob("date=*/*.parquet") for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(rows, key=lambda row: (row["connection_id"], row["direction"], row["seq"]))


def test_a_damaged_file_gives_the_packets_before_the_damage(tmp_path):
    content = (CAPTURES / "healthy.pcap").read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(content[: len(content) // 2])
    taken: list[int] = []
    with pytest.raises(DamagedCaptureError) as damage:
        taken.extend(len(block) for block in read_blocks(str(path)))
    with pytest.raises(DamagedCaptureError) as expected:
        list(read_packets(str(path)))
    assert (damage.value.packets, damage.value.offset) == (expected.value.packets, expected.value.offset)
    assert sum(taken) == damage.value.packets > 100


def test_more_flows_than_are_numbered_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of many ports: the numbers of a block under way must not be forgotten before it is read."""
    monkeypatch.setattr(lanes, "MAX_FLOWS", 50)
    given: list[Packet] = []
    for number in range(300):
        flow = Flow(client=("10.0.0.1", 20_000 + number), ts=1_700_000_000_000_000 + number * 1000).open()
        given += flow.send(0, request(1)).send(1, response(1)).send(0, request(2)).send(1, response(2)).packets
    plain, stats = one_by_one(given, "lengths")
    found, block_stats, _ = by_blocks(given, "lengths", 700)
    assert sorted(found, key=str) == sorted(plain, key=str)
    assert len(found) == 1200
    assert block_stats.connections == stats.connections == {"kafka": 300}


@pytest.mark.parametrize("end", ["close", "reset"])
def test_what_speaks_nothing_of_ours_ends_with_its_flags_though_its_bytes_were_not_taken(end):
    agent = BlockAgent(Agent("a", "lengths", CaptureStats()))
    flow = Flow(server=("10.0.0.2", 80)).open()
    flow.send(0, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").send(1, b"HTTP/1.1 200 OK\r\n\r\n" * 4000)
    list(agent.take_packets(flow.packets))
    assert not any(connection.is_over() for connection in agent._tracker.connections())
    begun = len(flow.packets)
    flow.send(1, b"x" * 3_000_000)
    getattr(flow, end)(*([1] if end == "reset" else []))
    list(agent.take_packets(flow.packets[begun:]))
    assert all(connection.is_over() for connection in agent._tracker.connections())
    assert agent.stats.not_recognised == {"not_recognised": 1}
    assert not list(agent.finish())
