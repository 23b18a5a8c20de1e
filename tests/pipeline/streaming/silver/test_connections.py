"""``silver.connections`` grows with what agents state, and is the same however often and in which order that comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.connections import connections
from pipeline.embedded.lake import write_lake
from pipeline.streaming.operations.erasure import _mentions
from pipeline.streaming.silver.connections import refresh_connections
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.lake_io import FEW_ROWS, LakeIO
from pipeline.streaming.storage.sinks import delete_rows
from pipeline.tables import CONNECTIONS, DUPLICATE_FLOWS, GAPS
from tests.pipeline.lakes import rows as rows_of
from tests.pipeline.lakes import versions
from tests.pipeline.rows import T0, add, arrow, row

pytestmark = pytest.mark.spark

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
FINAL = 10


def us(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def stated(
    agent: str = "a", packets: int = 4, *, seq: int = FINAL, end: datetime = T0, flow: str = "f", **life: Any
) -> dict[str, Any]:
    """A row of bronze.gaps."""
    values = {
        "how": "served", "opened": "yes", "flow_id": flow, "client_ip": "10.0.0.5", "client_port": 41000,
        "server_ip": "10.0.0.9", "server_port": 9092, "began_us": us(T0) - 1, "ended_us": us(end),
        "packets": [packets, 0], **life,
    }  # fmt: skip
    return row(
        GAPS, connection_id=f"{agent}-{flow}", agent_id=agent, seq=seq, ts=end, date=end.date(), method="connection",
        life=orjson.dumps(values).decode(),
    )  # fmt: skip


ORDERS: dict[str, Sequence[dict[str, Any]]] = {
    "one agent": [stated()],
    "two agents, one of which saw more": [stated("a", 4), stated("b", 5)],
    "two agents, each as much": [stated("b", 4), stated("a", 4)],
    "the day changes between two agents": [
        stated("a", 4, end=T0 + DAY / 2 - SECOND), stated("b", 5, end=T0 + DAY / 2),
    ],
    "it grows": [
        stated(packets=1, seq=1, is_interim=True), stated(packets=2, seq=2, end=T0 + SECOND, is_interim=True),
        stated(packets=3, end=T0 + 2 * SECOND),
    ],
    "it grows for days": [
        stated(packets=1, seq=1, is_interim=True), stated(packets=2, seq=2, end=T0 + 3 * DAY, is_interim=True),
        stated(packets=3, end=T0 + 9 * DAY),
    ],
    "others are beside it": [
        stated(flow="other", how="refused", opened="refused"), stated(packets=1, seq=1, is_interim=True),
        stated(packets=3, end=T0 + DAY), stated(flow="another", end=T0 + DAY),
    ],
}  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_lake(tmp_path / "lake", {})
    return tmp_path / "lake"


def refresh(spark: SparkSession, lake: Path, since: datetime, few: int = FEW_ROWS) -> None:
    refresh_connections(LakeIO(spark, Lake.at(lake), few), us(since))


@pytest.mark.parametrize(
    ("of", "is_reversed", "few"),
    [
        *((of, is_reversed, FEW_ROWS) for of in ORDERS for is_reversed in (False, True)),
        ("two agents, one of which saw more", True, 0),
        ("it grows for days", False, 0),
    ],
    ids=str,
)
def test_each_connection_has_one_row_however_it_came(
    spark: SparkSession, lake: Path, of: str, is_reversed: bool, few: int
) -> None:
    some = ORDERS[of]
    expected = sorted(connections(arrow(GAPS, some)).to_pylist(), key=repr)
    for one in reversed(some) if is_reversed else some:
        add(lake / GAPS.path, GAPS, [one])
        refresh(spark, lake, one["ts"], few)
    assert rows_of(lake, CONNECTIONS) == expected
    before = versions(lake, [CONNECTIONS])
    refresh(spark, lake, T0 - DAY, few)
    assert versions(lake, [CONNECTIONS]) == before


def test_a_lake_of_an_older_release_gets_the_rows_of_all_its_days(spark: SparkSession, lake: Path) -> None:
    add(lake / GAPS.path, GAPS, [stated(), stated(flow="later", end=T0 + 3 * DAY)])
    refresh(spark, lake, T0 + 3 * DAY)
    assert {one["flow_id"] for one in rows_of(lake, CONNECTIONS)} == {"f", "later"}


def test_a_copy_behind_address_translation_names_the_one_that_counts(spark: SparkSession, lake: Path) -> None:
    add(lake / GAPS.path, GAPS, [stated(), stated(flow="behind", client_ip="10.0.0.1")])
    refresh(spark, lake, T0)
    assert counted(lake) == {"a-f": None, "a-behind": None}
    copy = row(
        DUPLICATE_FLOWS,
        connection_id="a-behind",
        counted_connection_id="a-f",
        is_translated=True,
        hour=T0,
        date=T0.date(),
    )
    add(lake / DUPLICATE_FLOWS.path, DUPLICATE_FLOWS, [copy])
    refresh(spark, lake, T0)
    assert counted(lake) == {"a-f": None, "a-behind": "a-f"}


def counted(lake: Path) -> dict[str, str | None]:
    return {one["connection_id"]: one["counted_connection_id"] for one in rows_of(lake, CONNECTIONS)}


def test_a_copy_counts_until_the_one_that_counts_has_a_row(spark: SparkSession, lake: Path) -> None:
    add(lake / DUPLICATE_FLOWS.path, DUPLICATE_FLOWS, [
        row(DUPLICATE_FLOWS, connection_id="a-behind", counted_connection_id="a-f", is_translated=True,
            hour=T0, date=T0.date())
    ])  # fmt: skip
    add(lake / GAPS.path, GAPS, [stated(flow="behind", end=T0)])
    refresh(spark, lake, T0)
    assert counted(lake) == {"a-behind": None}
    add(lake / GAPS.path, GAPS, [stated(end=T0 + SECOND)])
    refresh(spark, lake, T0 + SECOND)
    assert counted(lake) == {"a-f": None, "a-behind": "a-f"}


def test_of_two_agents_that_saw_the_one_that_counts_either_row_stands_for_it(spark: SparkSession, lake: Path) -> None:
    """The row of the one that counts is that of the agent that saw more packets of it, with another id."""
    of_copies = {"counted_connection_id": "a-f", "hour": T0, "date": T0.date()}
    add(lake / DUPLICATE_FLOWS.path, DUPLICATE_FLOWS, [
        row(DUPLICATE_FLOWS, connection_id="a-behind", is_translated=True, has_own_flow=True, **of_copies),
        row(DUPLICATE_FLOWS, connection_id="b-f", is_translated=False, has_own_flow=False, **of_copies),
    ])  # fmt: skip
    add(lake / GAPS.path, GAPS, [stated("a", 4), stated("b", 5), stated(flow="behind")])
    refresh(spark, lake, T0)
    assert counted(lake) == {"b-f": None, "a-behind": "b-f"}


@pytest.mark.parametrize("few", [FEW_ROWS, 0], ids=["here", "by Spark"])
@pytest.mark.parametrize("is_reversed", [False, True], ids=["copy comes last", "copy comes first"])
def test_initial_sequence_numbers_show_a_copy_however_it_comes(
    spark: SparkSession, lake: Path, few: int, is_reversed: bool
) -> None:
    refused = {"how": "refused", "opened": "refused", "isn": [7, None]}
    some = [
        stated(**refused),
        stated(flow="behind", end=T0 + SECOND, **{**refused, "began_us": us(T0) + 30, "client_ip": "10.0.0.1"}),
        stated(flow="other", end=T0 + SECOND, **{**refused, "isn": [8, None]}),
    ]
    for one in reversed(some) if is_reversed else some:
        add(lake / GAPS.path, GAPS, [one])
        refresh(spark, lake, one["ts"], few)
    assert counted(lake) == {"a-f": None, "a-behind": "a-f", "a-other": None}
    assert rows_of(lake, CONNECTIONS) == sorted(connections(arrow(GAPS, some)).to_pylist(), key=repr)
    before = versions(lake, [CONNECTIONS])
    refresh(spark, lake, T0 - DAY, few)
    assert versions(lake, [CONNECTIONS]) == before


def test_numbers_that_come_back_later_show_nothing(spark: SparkSession, lake: Path) -> None:
    """A program that opens each connection with the same numbers."""
    for number in range(3):
        begun = us(T0) + number * 40_000
        end = T0 + number * SECOND
        add(
            lake / GAPS.path,
            GAPS,
            [stated(flow=f"f{number}", end=end, isn=[7, 9], began_us=begun, client_ip=f"c{number}")],
        )
        refresh(spark, lake, end)
    assert counted(lake) == {"a-f0": None, "a-f1": None, "a-f2": None}


@pytest.mark.parametrize("name", [("client_ip", "10.0.0.5"), ("connection_id", "a-f")], ids=str)
def test_what_is_erased_does_not_come_back(spark: SparkSession, lake: Path, name: tuple[str, str]) -> None:
    add(lake / GAPS.path, GAPS, [stated(), stated(flow="other", client_ip="10.0.0.7")])
    refresh(spark, lake, T0)
    for table in (GAPS, CONNECTIONS):
        texts = [] if name[0] == "connection_id" else [name[1]]
        delete_rows(spark, Lake.at(lake), table, _mentions(table, [name], texts))
    refresh(spark, lake, T0)
    assert [one["client_ip"] for one in rows_of(lake, CONNECTIONS)] == ["10.0.0.7"]
    assert read_table(spark, Lake.at(lake), GAPS).where(F.col("life").contains("10.0.0.5")).isEmpty()
