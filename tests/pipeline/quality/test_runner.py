"""A sound lake passes; each way of being unsound is found, counted and reported without showing data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from rich.console import Console

from pipeline.errors import UserError
from pipeline.quality import engines
from pipeline.quality.engines import takes_in_process
from pipeline.quality.model import critical_failures
from pipeline.quality.relations import RELATIONS
from pipeline.quality.runner import QualityResult, run_checks, show_results
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import EXCHANGES, FINDINGS, FRAMES, OFFSET_TIMELINE, QUALITY_RESULTS, TABLES
from tests.pipeline.lake.test_layout import with_layout
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import T0, row, write
from tests.requirements import require_java

pytestmark = pytest.mark.spark

HIDDEN = "value-that-must-not-be-shown"


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    require_java()
    return build_session("wirelake-tests")


def paired(**values: Any) -> dict[str, Any]:
    answered = {"request_ts": T0, "response_ts": T0 + timedelta(milliseconds=1), "latency_us": 1000}
    return row(EXCHANGES, **(answered | values))


def found(results: Sequence[QualityResult]) -> dict[str, int | None]:
    return {f"{r.table_name}/{r.name}/{r.column_name or ''}": r.rows_failed for r in results if not r.success}


@pytest.mark.proof  # all tables, a minute
def test_a_sound_lake_passes_and_the_results_are_a_table(spark: SparkSession, tmp_path: Path) -> None:
    filled = {
        FRAMES.full_name: [row(FRAMES, seq=n, size=4, frame=b"abcd", decode_status="ok") for n in range(3)],
        EXCHANGES.full_name: [paired(exchange_id="a"), paired(exchange_id="b", error_codes=[3], error_names=["X"])],
        OFFSET_TIMELINE.full_name: [row(OFFSET_TIMELINE, lag=0, committed_offset=5, high_watermark=5)],
        FINDINGS.full_name: [row(FINDINGS)],
    }
    for name, table in TABLES.items():
        write(tmp_path, table, filled.get(name, []))
    results = run_checks(spark, Lake.at(tmp_path))
    assert found(results) == {}
    others = {name for name in TABLES if not name.startswith("ops.")} | {"ops.landing_files"}
    assert {r.table_name for r in results} == others
    others = {"has_columns", *(one.name for one in RELATIONS)}
    assert {r.rows_checked for r in results if r.table_name == "bronze.frames" and r.name not in others} == {3}

    stored = DeltaTable(str(tmp_path / QUALITY_RESULTS.path)).to_pyarrow_table().to_pylist()
    assert len(stored) == len(results)
    assert {r["run_id"] for r in stored} == {results[0].run_id}
    assert critical_failures(results) == []
    console = Console(file=(out := StringIO()), width=160)
    show_results(results, console)
    assert "0 failed" in out.getvalue()


def test_each_defect_is_found_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        EXCHANGES,
        [
            paired(exchange_id=HIDDEN),
            paired(exchange_id=HIDDEN),
            paired(exchange_id="no-response", response_ts=None, latency_us=None),
            paired(exchange_id="negative", latency_us=-1),
            paired(exchange_id="unnamed", error_codes=[3], error_names=[]),
            paired(exchange_id=None),
            *(paired(exchange_id=f"u{n}", status="unanswered", response_ts=None, latency_us=None) for n in range(3)),
        ],
    )
    write(
        tmp_path,
        OFFSET_TIMELINE,
        [row(OFFSET_TIMELINE, kind=HIDDEN, lag=-1, committed_offset=7, high_watermark=5)],
    )
    results = run_checks(spark, str(tmp_path))
    missing = {f"{n}/exists/": None for n in TABLES if not n.startswith("ops.")}
    del missing["silver.exchanges/exists/"], missing["gold.offset_timeline/exists/"]
    assert found(results) == missing | {
        "silver.exchanges/unique_key/": 1,
        "silver.exchanges/not_null/exchange_id": 1,
        "silver.exchanges/paired_has_both_sides/": 1,
        "silver.exchanges/latency_not_negative/": 1,
        "silver.exchanges/errors_have_names/": 1,
        "silver.exchanges/mostly_paired/status": 3,
        "gold.offset_timeline/allowed_values/kind": 1,
        "gold.offset_timeline/at_least/lag": 1,
        "gold.offset_timeline/lag_not_negative/": 1,
        "gold.offset_timeline/committed_offset_not_above_high_watermark/": 1,
    }
    warnings = {r.name for r in results if not r.success} - {r.name for r in critical_failures(results)}
    assert warnings == {"mostly_paired", "committed_offset_not_above_high_watermark"}

    console = Console(file=(out := StringIO()), width=160)
    show_results(results, console)
    assert "latency_us >= 0; 1 of 9 rows violate it" in out.getvalue()
    reported = out.getvalue() + json.dumps(
        DeltaTable(str(tmp_path / QUALITY_RESULTS.path)).to_pyarrow_table().to_pylist(), default=str
    )
    assert HIDDEN not in reported


def test_a_table_that_lacks_a_column_fails_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("f",)], "finding_id string").write.format("delta").save(str(tmp_path / FINDINGS.path))
    mine = [r for r in run_checks(spark, tmp_path) if r.table_name == FINDINGS.full_name]
    by_name = {r.name: r for r in mine}
    assert {name: one.success for name, one in by_name.items()} == {"has_columns": False, "properties_kept": True}
    assert "missing: advice, cluster" in by_name["has_columns"].message


def test_no_lake_is_wrong_use(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no lake at"):
        run_checks(spark, tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_damaged_file_fails_the_checks_of_its_table_alone(tmp_path: Path) -> None:
    lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
    (damaged,) = (lake / OFFSET_TIMELINE.path).rglob("*.parquet")
    content = bytearray(damaged.read_bytes())
    content[4:10_000] = bytes(9_996)
    damaged.write_bytes(content)
    assert takes_in_process(Lake.at(lake))
    results = run_checks(None, lake)
    relations = {one.name for one in RELATIONS} | {"derived_again"}
    failed = [r for r in results if not r.success and r.name not in relations]
    assert {r.table_name for r in failed} == {OFFSET_TIMELINE.full_name}
    assert all("could not be checked" in r.message for r in failed)


def test_what_is_large_or_of_another_layout_is_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
    assert takes_in_process(Lake.at(lake))
    assert [r.message for r in run_checks(None, lake) if not r.success] == []
    assert not takes_in_process(Lake.at(f"s3a://bucket{lake}"))
    monkeypatch.setattr(engines, "MOST_ROWS", 1)
    assert not takes_in_process(Lake.at(lake))
    monkeypatch.undo()
    with_layout(lake, FINDINGS, "2")
    assert not takes_in_process(Lake.at(lake))
