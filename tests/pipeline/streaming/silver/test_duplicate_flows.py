"""A connection that was seen twice, by two agents or behind address translation, counts once; silver keeps both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.analysis.duplicates.duplicate_flows import copies
from pipeline.analysis.fit import schema_of
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.streaming.job import run_stream
from pipeline.streaming.silver.duplicate_flows import _label_sql, refresh_copies
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import FEW_ROWS, LakeIO
from pipeline.tables import (
    API_LATENCY,
    ASSIGNMENTS,
    CLIENTS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    FETCH_SESSIONS,
    FINDINGS,
    GAPS,
    MONGO_MINUTES,
    OFFSET_TIMELINE,
    TRANSACTIONS,
    Table,
)
from tests.captures.seen_again import later, proxied, seen_only, translated
from tests.paths import ROOT
from tests.pipeline.lakes import rows, versions
from tests.pipeline.rows import T0, add, row

pytestmark = pytest.mark.spark

CAPTURES = [ROOT / "tests" / "captures" / name for name in ("changing_hands.pcap", "mongodb/troubled_mongodb.pcap")]
DERIVED = (
    ASSIGNMENTS, TRANSACTIONS, FETCH_SESSIONS, OFFSET_TIMELINE, API_LATENCY, MONGO_MINUTES, CLIENTS, FINDINGS,
)  # fmt: skip
IDS = {"exchange_id", "first_exchange_id", "end_exchange_id", "evidence"}
"""Distinguish the copies."""

Content = dict[str, list[dict[str, Any]]]


def _plain(value: Any) -> Any:
    """What happened names exchanges, too."""
    return re.sub(r'"exchange_id":"[^"]*"', "", value) if isinstance(value, str) else value


def content(lake: Path) -> Content:
    return {
        table.full_name: sorted(
            ({name: _plain(value) for name, value in one.items() if name not in IDS} for one in rows(lake, table)),
            key=repr,
        )
        for table in DERIVED
    }


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content, Content]:
    """A lake, and what was derived there when one agent had landed, and when another had seen the same."""
    folder = tmp_path_factory.mktemp("copies")
    derived = []
    for agent in ("second", "first"):
        read_capture(CAPTURES, folder / "landing", agent_id=agent)
        run_stream(folder / "landing", folder / "lake", once=True, spark=spark)
        derived.append(content(folder / "lake"))
    return folder / "lake", derived[0], derived[1]


@pytest.fixture(scope="module")
def translated_lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Content]]:
    """A landing zone and lake beside it; what was derived there of a recording, when an agent whose clock is three

    seconds ahead had seen the same behind masquerading, and when the first one had seen a proxy's side as well.
    """
    folder = tmp_path_factory.mktemp("translated")
    seen: dict[str, Callable[[bytes], bytes]] = {
        "node": lambda pcap: pcap,
        "gateway": lambda pcap: later(seen_only(pcap, translated(client="10.0.9.9")), 3_000_000),
        "node-proxy": lambda pcap: seen_only(pcap, proxied("10.0.9.10", "10.0.9.11")),
    }
    derived = []
    for agent, way in seen.items():
        captures = []
        for capture in CAPTURES:
            captures.append(folder / f"{agent}-{capture.name}")
            captures[-1].write_bytes(way(capture.read_bytes()))
        read_capture(captures, folder / "landing", agent_id=agent)
        run_stream(folder / "landing", folder / "lake", once=True, spark=spark)
        derived.append(content(folder / "lake"))
    return folder, derived


@pytest.mark.proof
@pytest.mark.parametrize("table", DERIVED, ids=lambda table: table.full_name)
def test_what_is_derived_is_the_same_behind_address_translation(
    translated_lakes: tuple[Path, list[Content]], table: Table
) -> None:
    _, contents = translated_lakes
    once, *more = ([_without_names(one) for one in content[table.full_name]] for content in contents)
    assert more == [once, once]


def _without_names(one: dict[str, Any]) -> dict[str, Any]:
    """Names of topics are taken from all copies: when one was seen last goes by the clock of any agent."""
    return {} if one.get("rule") == "topic_recreated" else one


@pytest.mark.proof
def test_the_job_and_diagnose_find_the_same_copies(translated_lakes: tuple[Path, list[Content]]) -> None:
    folder, _ = translated_lakes
    found = diagnose(read_inputs([str(folder / "landing")]), StreamSettings())
    in_lake, in_memory = rows(folder / "lake", DUPLICATE_FLOWS), found.tables[DUPLICATE_FLOWS.full_name].to_pylist()
    names = ("connection_id", "flow_id", "counted_connection_id", "is_translated")
    assert {tuple(r[n] for n in names) for r in in_lake} == {tuple(r[n] for n in names) for r in in_memory}
    assert len(in_lake) == len(in_memory)
    assert {r["counted_agent_id"] for r in in_lake} == {"node"}
    assert found.looked.copies == found.looked.translated == 2 * found.looked.connections


@pytest.mark.proof
@pytest.mark.parametrize("table", DERIVED, ids=lambda table: table.full_name)
def test_what_is_derived_is_the_same_with_one_agent_and_with_two(
    lakes: tuple[Path, Content, Content], table: Table
) -> None:
    _, of_one, of_two = lakes
    assert of_one[table.full_name]
    assert of_two[table.full_name] == of_one[table.full_name]


@pytest.mark.proof
def test_silver_keeps_both_copies_and_marks_which_does_not_count(lakes: tuple[Path, Content, Content]) -> None:
    lake, *_ = lakes
    seen = Counter(r["agent_id"] for r in rows(lake, EXCHANGES))
    assert seen["first"] == seen["second"] > 0
    other = rows(lake, DUPLICATE_FLOWS)
    assert {(r["agent_id"], r["counted_agent_id"]) for r in other} == {("second", "first")}
    of_second = {r["connection_id"] for r in rows(lake, EXCHANGES) if r["agent_id"] == "second"}
    assert {r["connection_id"] for r in other} == of_second


@pytest.mark.proof
def test_what_is_noted_already_is_not_written_again(spark: SparkSession, lakes: tuple[Path, Content, Content]) -> None:
    lake, *_ = lakes
    before = versions(lake, [DUPLICATE_FLOWS])
    assert refresh_copies(LakeIO(spark, Lake.at(lake)), 5_000_000_000) == 3_600_000_000
    assert versions(lake, [DUPLICATE_FLOWS]) == before


def test_the_copy_with_the_most_whole_exchanges_of_an_hour_counts() -> None:
    def seen(agent: str, flow: str, times: int, status: str = "paired") -> list[dict[str, Any]]:
        ids = {"agent_id": agent, "flow_id": flow, "connection_id": f"{agent}{flow}", "ts": T0, "status": status}
        return [row(EXCHANGES, exchange_id=f"{agent}{flow}-{n}{status}", **ids) for n in range(times)]

    lossy = [*seen("a", "f", 2), *seen("a", "f", 9, "unanswered")]
    some = [*lossy, *seen("b", "f", 3), *seen("c", "f", 3), *seen("a", "alone", 1)]
    found = copies(pa.Table.from_pylist(some, schema_of(EXCHANGES))).to_pylist()
    assert {(r["connection_id"], r["counted_agent_id"]) for r in found} == {("af", "b"), ("cf", "b")}


def test_a_flow_whose_id_has_quotes_is_no_sql(spark: SparkSession) -> None:
    """Ids come from landing files, which another program may have written."""
    hostile = "x' OR '1' = '1\\"
    same = pa.table({"flow_id": [hostile], "label": ["it's one"]})
    rows = spark.createDataFrame([(hostile,), ("another",)], "flow_id string")
    labels = rows.selectExpr(f"{_label_sql(same)} AS label").collect()
    assert [row["label"] for row in labels] == ["it's one", "another"]


@pytest.mark.parametrize("few", [FEW_ROWS, 0], ids=["here", "by Spark"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["copy comes last", "copy comes first"])
def test_initial_sequence_numbers_show_a_copy_when_both_have_ended(
    spark: SparkSession, tmp_path: Path, order: tuple[int, int], few: int
) -> None:
    """Connections with one exchange, whose content is no one client's own."""
    lake = tmp_path / "lake"
    write_lake(lake, {})
    us = int(T0.timestamp() * 1_000_000)
    of = []
    for number, flow in enumerate(("f", "behind")):
        ids = {"agent_id": "a", "flow_id": flow, "connection_id": f"a{flow}"}
        ends = {"client_ip": f"10.0.0.{number}", "client_port": 41000, "server_ip": "10.0.0.9", "server_port": 9092}
        values = {
            "how": "served",
            "flow_id": flow,
            **ends,
            "began_us": us + 20 * number,
            "ended_us": us + 900,
            "isn": [7, 9],
            "bytes": [1, 1],
        }
        gap = row(
            GAPS, connection_id=f"a{flow}", agent_id="a", seq=1, ts=T0, date=T0.date(), method="connection",
            life=orjson.dumps(values).decode(),
        )  # fmt: skip
        exchange = row(EXCHANGES, exchange_id=f"a{flow}-0", **ids, **ends, ts=T0, date=T0.date(), status="paired")
        of.append((exchange, gap))
    found = []
    for number in order:
        exchange, gap = of[number]
        add(lake / EXCHANGES.path, EXCHANGES, [exchange])
        add(lake / GAPS.path, GAPS, [gap])
        refresh_copies(LakeIO(spark, Lake.at(lake), few), us)
        found.append([(r["connection_id"], r["counted_connection_id"]) for r in rows(lake, DUPLICATE_FLOWS)])
    assert found == [[], [("abehind", "af")]]
