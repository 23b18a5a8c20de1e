"""Initial sequence numbers show that two connections are one, however little these carry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.duplicates.numbers import MOST_COPIES, TRANSLATED_US, same_numbers
from pipeline.analysis.fit import schema_of
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import CONNECTIONS, DUPLICATE_FLOWS, GAPS
from tests.captures.seen_again import later, seen_only, seen_twice, translated
from tests.pipeline.capture.wire import Flow, pcap, request, response

NODE, VIP = "10.0.9.9", "10.96.0.1"
START, SEC = 1_700_000_000_000_000, 1_000_000
SNAT = translated(client=NODE, server=VIP)


def short(number: int = 0) -> Flow:
    """A connection that carries one exchange, which names nobody."""
    isn = 1_000 + 7_919 * number, 2_000_000 + 104_729 * number
    some = Flow(client=("10.0.0.5", 41000 + number), server=("10.0.0.9", 9092), isn=isn, ts=START + number * SEC)
    return some.open().send(0, request(1)).send(1, response(1)).close()


def found(path: Path) -> Diagnosis:
    return diagnose(read_inputs([str(path)]), StreamSettings())


def counted(of: Diagnosis) -> dict[tuple[str, int], bool]:
    """By client whether its connection counts."""
    rows: list[dict[str, Any]] = of.tables[CONNECTIONS.full_name].to_pylist()
    return {(row["client_ip"], row["client_port"]): row["counted_connection_id"] is None for row in rows}


@pytest.mark.parametrize("of", [short, lambda: Flow(ts=START).open().close()], ids=["one exchange", "no byte"])
def test_a_copy_of_a_short_connection_counts_once(tmp_path: Path, of: Callable[[], Flow]) -> None:
    (tmp_path / "some.pcap").write_bytes(seen_twice(pcap(of().packets), SNAT))
    told = found(tmp_path / "some.pcap")
    assert sorted((ip == NODE, counts) for (ip, _), counts in counted(told).items()) == [(False, True), (True, False)]
    assert told.looked.copies == told.tables[DUPLICATE_FLOWS.full_name].num_rows == told.looked.exchanges


def test_two_agents_with_clocks_of_their_own_see_one(tmp_path: Path) -> None:
    ways: dict[str, Callable[[bytes], bytes]] = {
        "node": lambda one: one, "gateway": lambda one: later(seen_only(one, SNAT), 3 * SEC),
    }  # fmt: skip
    for agent, way in ways.items():
        (tmp_path / f"{agent}.pcap").write_bytes(way(pcap(short().packets)))
        read_capture([tmp_path / f"{agent}.pcap"], tmp_path / "landing", agent_id=agent)
    assert sum(counted(found(tmp_path / "landing")).values()) == 1


@pytest.mark.parametrize(
    ("number", "hosts", "apart_us"),
    [(3, 1, 100), (3, 3, TRANSLATED_US), (MOST_COPIES + 1, 100, 100)],
    ids=["between the same hosts", "again later", "of many hosts"],
)
def test_connections_whose_numbers_are_constants_of_a_program_all_count(
    tmp_path: Path, number: int, hosts: int, apart_us: int
) -> None:
    packets = []
    for each in range(number):
        some = Flow(
            client=(f"10.0.0.{each % hosts}", 41000 + each), server=("10.0.0.9", 9092), ts=START + each * apart_us
        )
        packets += some.open().send(0, request(1)).send(1, response(1)).close().packets
    (tmp_path / "some.pcap").write_bytes(pcap(packets))
    assert list(counted(found(tmp_path / "some.pcap")).values()) == [True] * number


def test_clients_with_numbers_of_one_program_that_send_other_bytes_all_count(tmp_path: Path) -> None:
    one = Flow(client=("10.0.0.5", 41000), server=("10.0.0.9", 9092), ts=START)
    other = Flow(client=("10.0.0.6", 41000), server=("10.0.0.9", 9092), ts=START)
    packets = [*one.open().send(0, request(1)).send(1, response(1)).close().packets,
               *other.open().send(0, request(1)).send(1, response(1)).send(0, request(2)).close().packets]  # fmt: skip
    (tmp_path / "some.pcap").write_bytes(pcap(packets))
    assert list(counted(found(tmp_path / "some.pcap")).values()) == [True, True]


def test_connections_with_numbers_of_their_own_all_count(tmp_path: Path) -> None:
    one, other = short(0), short(1)
    (tmp_path / "some.pcap").write_bytes(pcap([*one.packets, *other.packets]))
    assert list(counted(found(tmp_path / "some.pcap")).values()) == [True, True]


def test_of_what_is_no_connection_nothing_is_known() -> None:
    assert same_numbers(schema_of(GAPS).empty_table()).num_rows == 0
