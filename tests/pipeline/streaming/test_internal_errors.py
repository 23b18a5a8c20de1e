"""A planted fault in the streaming job costs the step that has it, is noted in the lake, and ends no query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.analysis.changes import of_all
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.kafka import groundwork
from pipeline.analysis.safety.guard import noting
from pipeline.analysis.statements import kafka
from pipeline.config.settings import StreamSettings
from pipeline.streaming import refresh
from pipeline.streaming.gold import findings, minutes, realtime_findings
from pipeline.streaming.job import run_stream
from pipeline.streaming.silver import batches
from pipeline.streaming.silver.bodies import exchanges_with_bodies, together
from pipeline.streaming.silver.stated import gathered_here
from pipeline.streaming.storage.internal_errors import noting_steps
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    API_LATENCY,
    ASSIGNMENTS,
    CLIENTS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    FETCH_SESSIONS,
    FINDINGS,
    FRAMES,
    INTERNAL_ERRORS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    TRANSACTIONS,
    Table,
)


def rows(lake: Path, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(lake / table.path)).to_pyarrow_table().to_pylist()
    return found


def fails(*_: Any, **__: Any) -> Any:
    raise ValueError("canary")


def test_faults_are_noted_once_and_everything_else_is_written(
    spark: SparkSession, landing: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    stated, seen = kafka._stated, list[object]()

    def one_fails(item: kafka.ParsedExchange, values: Any) -> Any:
        seen.append(item)
        return fails() if len(seen) == 5 else stated(item, values)

    monkeypatch.setattr(kafka, "_stated", one_fails)
    monkeypatch.setattr(groundwork, "newest_versions", fails)
    monkeypatch.setattr(minutes, "api_latency", fails)
    summary = run_stream(landing, lake, once=True, spark=spark)
    steps = {error.step for error in summary.errors.errors}
    assert steps == {
        "statements of an exchange", "what rules share: offered versions", f"table {API_LATENCY.full_name}"
    }  # fmt: skip
    noted = rows(lake, INTERNAL_ERRORS)
    assert {row["step"] for row in noted} == steps
    assert "canary" not in str(noted)
    (lost,) = (row["subject"] for row in noted if row["step"] == "statements of an exchange")
    assert len(rows(lake, FRAMES)) == len(rows(whole, FRAMES))
    kept = [row["exchange_id"] for row in rows(whole, OFFSET_EVENTS) if row["exchange_id"] != lost]
    assert sorted(row["exchange_id"] for row in rows(lake, OFFSET_EVENTS)) == sorted(kept)
    assert len(rows(lake, OFFSET_TIMELINE)) > 0
    assert "stuck_commit" in {row["rule"] for row in rows(lake, FINDINGS)}
    assert rows(lake, API_LATENCY) == []
    assert run_stream(landing, lake, once=True, spark=spark).errors.errors == ()
    assert rows(lake, INTERNAL_ERRORS) == noted


PLACES = {
    "refresh_copies": DUPLICATE_FLOWS, "refresh_latency": API_LATENCY, "refresh_transactions": TRANSACTIONS,
    "refresh_timeline": OFFSET_TIMELINE, "refresh_clients": CLIENTS, "drop_provisional": ASSIGNMENTS,
    "refresh_assignments": ASSIGNMENTS, "refresh_fetch_sessions": FETCH_SESSIONS, "refresh_findings": FINDINGS,
}  # fmt: skip
"""Steps of a refresh of gold, with the table that each writes."""


@pytest.mark.parametrize("first", [0, 3, 6])
def test_steps_of_a_refresh_cost_themselves(
    spark: SparkSession, lake: Path, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = list(PLACES)[first : first + 3]
    before = [rows(lake, table) for table in PLACES.values()]
    for step in planted:
        monkeypatch.setattr(refresh, step, fails)
    of_lake = LakeIO(spark, Lake.at(lake))
    with noting_steps(of_lake, "gold", None) as noted:
        refresh.write_gold(of_lake, of_all(1, 0), StreamSettings())
    assert {error.step for error in noted.errors} == {f"table {PLACES[step].full_name}" for step in planted}
    assert [len(rows(lake, table)) for table in PLACES.values()] == [len(kept) for kept in before]
    assert "canary" not in str(rows(lake, INTERNAL_ERRORS))


def test_a_look_ahead_that_fails_leaves_it_to_the_refresh(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_lake = LakeIO(spark, Lake.at(lake))
    exchanges = together(exchanges_with_bodies(of_lake, TableScan(EXCHANGES)))
    looking = realtime_findings.RealtimeFindings(StreamSettings())
    monkeypatch.setattr(realtime_findings, "findings_of", fails)
    with noting() as noted:
        looking.look(of_lake, gathered_here(exchanges, ClusterCatalog()))
    assert [(error.step, error.error) for error in noted.errors] == [("findings ahead of the refresh", "ValueError")]
    monkeypatch.undo()
    with noting() as noted:
        looking.look(of_lake, gathered_here(exchanges, ClusterCatalog()))
    assert noted.errors == ()


def test_names_that_fail_do_not_end_the_job(
    spark: SparkSession, landing: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "rename_earlier", fails)
    monkeypatch.setattr(findings, "find_all", fails)
    summary = run_stream(landing, tmp_path / "lake", once=True, spark=spark)
    steps = {error.step for error in summary.errors.errors}
    assert steps == {"names of earlier rows", f"table {FINDINGS.full_name}"}
    assert len(rows(tmp_path / "lake", EXCHANGES)) == len(rows(whole, EXCHANGES))
    assert run_stream(landing, tmp_path / "lake", once=True, spark=spark).errors.errors == ()


def test_a_table_whose_refresh_fails_stays_as_it_was(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(lake, API_LATENCY)
    monkeypatch.setattr(minutes, "api_latency", fails)
    of_lake = LakeIO(spark, Lake.at(lake))
    with noting_steps(of_lake, "gold", None) as noted:
        refresh.write_gold(of_lake, of_all(1, 0), StreamSettings())
    assert {error.step for error in noted.errors} == {f"table {API_LATENCY.full_name}"}
    assert rows(lake, API_LATENCY) == before
    assert [row["query"] for row in rows(lake, INTERNAL_ERRORS)] == ["gold"]
