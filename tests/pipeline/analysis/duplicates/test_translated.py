"""The same packets seen again behind address translation are one connection; clients that behave alike are two."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.duplicates.alike import alike, candidates
from pipeline.analysis.duplicates.duplicate_flows import all_copies
from pipeline.analysis.duplicates.translated import Statements
from pipeline.analysis.fit import schema_of
from pipeline.analysis.hours import HOUR_US
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import (
    CLIENTS,
    DUPLICATE_FLOWS,
    EXCHANGES_WITH_BODIES,
    GAPS,
    MONGO_COMMANDS,
    OFFSET_EVENTS,
    STATE_EVENTS,
)
from tests.captures.seen_again import (
    Again,
    Packet,
    jittered,
    losing,
    packets_of,
    proxied,
    seen_twice,
    since,
    translated,
)
from tests.captures.variants import pcap_of
from tests.paths import CAPTURES
from tests.pipeline.rows import T0, row

HEALTHY, HANDED, SHOP = "healthy.pcap", "changing_hands.pcap", "mongodb/troubled_mongodb.pcap"
NODE, VIP = "10.0.9.9", "10.96.0.1"
SNAT = translated(client=NODE)

WAYS: dict[str, tuple[Again, ...]] = {
    "masqueraded": (SNAT,),
    "service address": (translated(server=VIP),),
    "both": (translated(client=NODE, server=VIP),),
    "IPv6": (translated(client="fd00::9", server="fd00::1"),),
    "out of order": (jittered(SNAT, 200),),
    "behind a proxy": (proxied(NODE, "10.0.9.10"),),
    "thrice": (translated(server=VIP, delay_us=10), translated(client=NODE, delay_us=30)),
    "with loss": (losing(SNAT, 50),),
}


QUICK = {(HANDED, "both"), (HANDED, "behind a proxy"), (SHOP, "masqueraded")}


def judged(pcap: bytes, folder: Path) -> Diagnosis:
    (folder / "some.pcap").write_bytes(pcap)
    return diagnose(read_inputs([str(folder / "some.pcap")]), StreamSettings())


@cache
def recorded(name: str) -> bytes:
    return pcap_of(CAPTURES / name)


@cache
def as_recorded(name: str) -> tuple[int, dict[str, Any]]:
    """Its connections, and what people see of it."""
    with TemporaryDirectory() as folder:
        found = judged(recorded(name), Path(folder))
    return found.looked.connections, told(found)


def told(found: Diagnosis) -> dict[str, Any]:
    """What people see of it."""
    looked = found.looked
    return {
        "findings": sorted((r["rule"], r["subject"], r["summary"]) for r in found.findings.to_pylist()),
        "clients": sorted((r["client_id"], r["client_ip"]) for r in found.tables[CLIENTS.full_name].to_pylist()),
        "looked": (looked.connections, looked.exchanges, looked.pending, looked.groups, looked.servers),
    }


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=() if (name, way) in QUICK else pytest.mark.slow)
        for name in (HANDED, SHOP)
        for way in WAYS
    ],
)
def test_what_is_seen_again_counts_once(tmp_path: Path, name: str, way: str) -> None:
    connections, once = as_recorded(name)
    again = judged(seen_twice(recorded(name), *WAYS[way]), tmp_path)
    assert told(again) == once
    assert again.looked.copies == again.looked.translated == len(WAYS[way]) * connections


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_many_clients_seen_again_count_once(tmp_path: Path, way: str) -> None:
    _, once = as_recorded(HEALTHY)
    again = told(judged(seen_twice(recorded(HEALTHY), *WAYS[way]), tmp_path))
    assert (again["looked"], again["clients"]) == (once["looked"], once["clients"])


def test_a_copy_that_begins_midway_is_one(tmp_path: Path) -> None:
    pcap = recorded(HANDED)
    times = [packet.us for packet in packets_of(pcap)]
    _, once = as_recorded(HANDED)
    again = judged(seen_twice(pcap, since(SNAT, times[0] + (times[-1] - times[0]) // 3)), tmp_path)
    assert told(again) == once
    assert again.looked.copies > 0


def test_the_one_seen_first_counts(tmp_path: Path) -> None:
    before = translated(client=NODE, delay_us=-30)
    found = judged(seen_twice(recorded(HANDED), before), tmp_path)
    assert {r["client_ip"] for r in found.tables[CLIENTS.full_name].to_pylist()} == {NODE}


def other_ids(way: Again) -> Again:
    """A client of its own that behaves just like another one: other digits in the ids of its members."""
    member = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    swapped = bytes.maketrans(b"0123456789abcdef", b"fedcba9876543210")

    def again(packet: Packet, sent: bool) -> Iterator[Packet]:
        payload = member.sub(lambda found: found[0].translate(swapped), packet.payload)
        yield from way(replace(packet, payload=payload), sent)

    return again


def of_members(pcap: bytes) -> Callable[[Packet], bool]:
    """Which packets are of connections that carry heartbeats (api 12) and no Produce (api 0)."""
    by_api = {
        api: {
            frozenset((packet.source, packet.target))
            for packet in packets_of(pcap)
            if packet.source[1] > packet.target[1] and packet.payload[4:6] == api
        }
        for api in (b"\x00\x00", b"\x00\x0c")
    }
    return lambda packet: frozenset((packet.source, packet.target)) in by_api[b"\x00\x0c"] - by_api[b"\x00\x00"]


def test_members_that_behave_alike_at_the_same_time_are_two(tmp_path: Path) -> None:
    pcap = recorded(HANDED)
    is_theirs = of_members(pcap)
    connections, _ = as_recorded(HANDED)

    def theirs(packet: Packet, sent: bool) -> Iterable[Packet]:
        return SNAT(packet, sent) if is_theirs(packet) else ()

    def twins(packet: Packet, sent: bool) -> Iterable[Packet]:
        return (one.moved(*((7, 11) if sent else (11, 7))) for one in theirs(packet, sent))

    both = judged(seen_twice(pcap, other_ids(twins)), tmp_path)
    assert both.looked.copies == 0
    assert both.looked.connections > connections
    assert judged(seen_twice(pcap, theirs), tmp_path).looked.copies == both.looked.connections - connections


@pytest.mark.slow
@pytest.mark.parametrize("name", ["healthy_change_streams", "healthy_scaling", "healthy_restarts"])
def test_clients_of_one_deploy_and_of_one_rhythm_stay_apart(name: str) -> None:
    capture = CAPTURES / "rhythms" / f"{name}.pcap.zst"
    found = diagnose(read_inputs([str(capture)]), StreamSettings())
    assert found.looked.copies == 0


# --- by rows: what makes two connections one


def exchanges(connection: str, times: Iterable[int], **more: Any) -> list[dict[str, Any]]:
    more = {"agent_id": "one", "client_ip": "10.1.0.1", "client_port": 40_000, "client_id": "app", **more}
    return [
        row(
            EXCHANGES_WITH_BODIES, exchange_id=f"{connection}-{n}", connection_id=connection,
            flow_id=f"flow-{connection}",
            ts=T0 + timedelta(microseconds=us), correlation_id=n, api_key=12, api_version=4, request_size=80,
            response_size=16, status="paired", protocol="kafka", server_ip="10.2.0.1", server_port=9092, **more,
        )
        for n, us in enumerate(times)
    ]  # fmt: skip


def heartbeats(connection: str, member: str, number: int) -> list[dict[str, Any]]:
    """What of their first exchanges is the client's own."""
    return [
        row(
            STATE_EVENTS, exchange_id=f"{connection}-{n}", connection_id=connection, kind="heartbeat", ordinal=0,
            member_id=member, generation=1,
        )
        for n in range(number)
    ]  # fmt: skip


def found(some: list[dict[str, Any]], states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    statements = Statements(
        schema_of(OFFSET_EVENTS).empty_table(),
        pa.Table.from_pylist(states, schema_of(STATE_EVENTS)),
        schema_of(MONGO_COMMANDS).empty_table(),
    )
    copies: list[dict[str, Any]] = all_copies(
        pa.Table.from_pylist(some, schema_of(EXCHANGES_WITH_BODIES)), statements, schema_of(GAPS).empty_table()
    ).to_pylist()
    return copies


RHYTHM = [60_000_000 + n * 3_000_000 for n in range(10)]
SEEN = [one + 20 for one in RHYTHM]
OTHER = {"client_ip": "10.0.9.9", "client_port": 50_000}


def test_the_same_ids_at_the_same_times_are_one_connection() -> None:
    some = [*exchanges("a", RHYTHM), *exchanges("b", SEEN, **OTHER)]
    (copy,) = found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])
    assert (copy["connection_id"], copy["counted_connection_id"], copy["is_translated"]) == ("b", "a", True)


@pytest.mark.parametrize("members", [("m-1", "m-2"), ("", "")], ids=["ids of their own", "no ids"])
def test_without_common_ids_they_are_two(members: tuple[str, str]) -> None:
    some = [*exchanges("a", RHYTHM), *exchanges("b", SEEN, **OTHER)]
    assert not found(some, [*heartbeats("a", members[0], 10), *heartbeats("b", members[1], 10)])


def test_a_client_that_comes_again_with_the_same_ids_is_not_its_own_copy() -> None:
    later = [one + 40_000_000 for one in RHYTHM]
    some = [*exchanges("a", RHYTHM), *exchanges("b", later, client_port=40_001)]
    assert not found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])


@pytest.mark.parametrize(("skew_s", "copies"), [(3, 1), (-3, 1), (60, 0)])
def test_clocks_of_agents_may_differ_by_seconds(skew_s: int, copies: int) -> None:
    skewed = [one + skew_s * 1_000_000 for one in SEEN]
    some = [*exchanges("a", RHYTHM), *exchanges("b", skewed, agent_id="two", **OTHER)]
    assert len(found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])) == copies


def test_seconds_apart_in_one_capture_is_no_copy() -> None:
    some = [*exchanges("a", RHYTHM), *exchanges("b", [one + 2_000_000 for one in RHYTHM], **OTHER)]
    assert not found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])


def test_what_an_hour_shows_holds_in_the_next() -> None:
    last = HOUR_US
    times = [*(last - n * 1_000_000 for n in range(9, 0, -1)), last + 1_000_000]
    some = [*exchanges("a", times), *exchanges("b", [one + 20 for one in times], **OTHER)]
    copies = found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])
    assert [copy["connection_id"] for copy in copies] == ["b", "b"]


def test_a_copy_that_lacks_a_few_does_not_make_the_client_change_its_address() -> None:
    times = [n * 100_000 for n in range(200)]
    some = [*exchanges("a", times), *exchanges("b", [one + 20 for one in times], **OTHER)]
    states = [*heartbeats("a", "m-1", 200), *heartbeats("b", "m-1", 200)]
    for gone, counts in ((5, "a"), (50, "b")):
        left = [one for one in some if one["connection_id"] == "b" or one["correlation_id"] >= gone]
        assert {copy["counted_connection_id"] for copy in found(left, states)} == {counts}


def test_connections_without_ids_follow_their_host_each_its_nearest() -> None:
    boot = [0, 2_000]
    some = [*exchanges("a", RHYTHM), *exchanges("b", SEEN, **OTHER)]
    for n in range(3):  # pods that start within a millisecond
        start = 5_000_000 + n * 300
        some += exchanges(f"boot{n}", [start + one for one in boot], client_port=41_000 + n)
        some += exchanges(f"again{n}", [start + one + 20 for one in boot], **{**OTHER, "client_port": 51_000 + n})
    copies = found(some, [*heartbeats("a", "m-1", 10), *heartbeats("b", "m-1", 10)])
    assert {(copy["connection_id"], copy["counted_connection_id"]) for copy in copies} == {
        ("b", "a"), ("again0", "boot0"), ("again1", "boot1"), ("again2", "boot2"),
    }  # fmt: skip


def test_bootstrap_connections_of_many_pods_follow_behind_their_gateway() -> None:
    some, states, expected = [], [], set()
    for n in range(30):
        pod = {"client_ip": f"10.1.0.{n + 1}"}
        for name, times, port in (("work", RHYTHM, 40_000), ("boot", [5_000_000, 5_002_000], 41_000)):
            starts = [one + n * 200 for one in times]
            some += exchanges(f"{name}{n}", starts, **pod, client_port=port)
            seen = [one + 20 for one in starts]
            some += exchanges(f"again_{name}{n}", seen, client_ip="10.0.9.9", client_port=port + n)
            expected.add((f"again_{name}{n}", f"{name}{n}"))
        states += [*heartbeats(f"work{n}", f"m-{n}", 10), *heartbeats(f"again_work{n}", f"m-{n}", 10)]
    assert {(copy["connection_id"], copy["counted_connection_id"]) for copy in found(some, states)} == expected


@pytest.mark.parametrize(
    ("clusters", "copies"), [(("east", "west"), 0), (("east", "east"), 1), (("east", "10.2.0.1:9092"), 1)]
)
def test_servers_of_two_clusters_are_not_one(clusters: tuple[str, str], copies: int) -> None:
    some = [*exchanges("a", RHYTHM), *exchanges("b", SEEN, **OTHER)]
    states = [
        {**one, "cluster": cluster}
        for name, cluster in zip(("a", "b"), clusters, strict=True)
        for one in heartbeats(name, "m", 10)
    ]
    assert len(found(some, states)) == copies


def test_however_many_are_alike_there_are_no_more_pairs_than_exchanges() -> None:
    some = [one for n in range(300) for one in exchanges(f"c{n:03}", RHYTHM, client_port=30_000 + n)]
    rows = pa.Table.from_pylist(some, schema_of(EXCHANGES_WITH_BODIES))
    counted = alike(rows)
    assert counted.num_rows <= rows.num_rows + 300
    assert candidates(counted).num_rows == 300
    assert not found(some, [one for n in range(300) for one in heartbeats(f"c{n:03}", f"m-{n}", 10)])


def test_the_table_names_the_copy_that_counts() -> None:
    assert {"counted_connection_id", "is_translated"} <= set(DUPLICATE_FLOWS.column_names)
