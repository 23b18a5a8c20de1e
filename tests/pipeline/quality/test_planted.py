"""Each expectation that is written by hand has a defect that makes it fail, and no other one of its table.

Pandas in this process and Spark give the same verdict of each.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from decoder.errors import ErrorCode
from pipeline.dashboard.sql import query
from pipeline.quality.model import Run
from pipeline.quality.rows_sql import rows_sql
from pipeline.quality.runner import check_table, engine_for
from pipeline.quality.suites import LAYERS, WRITTEN, checks_of, tables_of
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import (
    TABLES,
    Table,
)
from pipeline.tables.silver_connections import HOWS
from tests.pipeline.rows import T0, row, write
from tests.requirements import require_java

pytestmark = pytest.mark.spark

LATER = T0 + timedelta(milliseconds=1)
SOUND: dict[str, dict[str, Any]] = {
    "bronze.frames": {"size": 4, "frame": b"abcd", "ts": T0, "ts_end": LATER, "date": T0.date()},
    "bronze.gaps": {"confidence": 0.5},
    "silver.connections": {"connections": 1, "client_ip": "192.0.2.1", "ended": "closed", "how": HOWS[0]},
    "silver.exchanges": {
        "request_ts": T0,
        "response_ts": LATER,
        "latency_us": 1000,
        "error_codes": [],
        "error_names": [],
    },
    "silver.offset_events": {"topic": "orders", "group_id": "billing"},
    "silver.record_batches": {"crc_valid": True},
    "silver.mongo_commands": {"ok": True},
    "gold.offset_timeline": {},
    "gold.findings": {"severity": "critical", "rule": "stuck_commit", "evidence": ["x"]},
    "gold.incidents": {"severity": "critical", "state": "ongoing", "root_id": "x", "findings": ["x"]},
}
"""Values of a sound row, where those of tests.pipeline.rows are none."""
PLANTED: dict[str, dict[str, dict[str, Any]]] = {
    "bronze.frames": {
        "allowed_values:decode_status": {"decode_status": "fine", "error_code": "X"},
        "allowed_values:protocol": {"protocol": "gopher"},
        "allowed_values:payload_policy": {"payload_policy": "some"},
        "ts_not_above_ts_end:": {"ts_end": T0 - timedelta(milliseconds=1)},
        "at_least:seq": {"seq": -1},
        "frame_not_above_size:": {"size": 3},
        "no_internal_error:": {"error_code": ErrorCode.INTERNAL.value},
        "date_is_day_of_ts:": {"date": date(2026, 3, 2)},
        "attributes_known:": {"record_batches": '[{"unknownAttributes":128}]'},
        "mostly_decoded:decode_status": {"decode_status": "malformed", "error_code": "X"},
    },
    "bronze.gaps": {
        "allowed_values:direction": {"direction": "sideways"},
        "at_least:bytes_lost": {"bytes_lost": -1},
        "confidence_is_share:": {"confidence": 1.1},
    },
    "silver.connections": {
        "closed_by_known:": {"closed_by": "nobody"},
        "reset_by_known:": {"reset_by": "nobody"},
        "at_least:round_trip_us": {"round_trip_us": -1},
        **{
            f"at_least:{side}_{counted}": {f"{side}_{counted}": -1}
            for side in ("client", "server")
            for counted in ("packets", "bytes", "sent_again", "unacknowledged")
        },
        "many_have_no_client:": {"connections": 2},
        "failed_has_end:": {"is_failed": True, "ended": "unknown"},
    },
    "silver.exchanges": {
        "paired_has_both_sides:": {"latency_us": None},
        "unpaired_has_one_side:": {"status": "unanswered"},
        "orphan_has_no_request:": {"status": "following_response"},
        "errors_have_names:": {"error_codes": [3]},
        "mostly_paired:status": {"status": "unanswered", "response_ts": None, "latency_us": None},
    },
    "silver.offset_events": {
        "allowed_values:kind": {"kind": "guessed"},
        "at_least:partition": {"partition": -1},
        "last_stable_offset_not_above_high_watermark:": {"last_stable_offset": 2, "high_watermark": 1},
        "log_start_offset_not_above_high_watermark:": {"log_start_offset": 2, "high_watermark": 1},
        "topic_known:": {"topic": None},
        "commit_has_group:": {"group_id": None},
        "isolation_level_known:": {"isolation_level": "read_anything"},
        "offset_is_one:": {"kind": "listed", "offset": -2},
        "commit_is_offset:": {"kind": "committed", "group_id": "g", "offset": -1},
    },
    "silver.record_batches": {
        "allowed_values:source": {"source": "air"},
        "base_offset_not_above_last_offset:": {"base_offset": 2, "last_offset": 1},
        "crc_valid:": {"crc_valid": False},
        "records_fit_offsets:": {"base_offset": 1, "last_offset": 2, "records": 3},
    },
    "silver.mongo_commands": {
        "error_has_code:": {"ok": False},
        "at_least:documents_in": {"documents_in": -1},
        "at_least:documents_out": {"documents_out": -1},
        "mostly_named:status": {"status": "unanswered"},
    },
    "gold.offset_timeline": {
        "allowed_values:kind": {"kind": "guessed"},
        "at_least:lag_seconds": {"lag_seconds": -1.0},
        "committed_offset_not_above_high_watermark:": {"committed_offset": 2, "high_watermark": 1},
        "last_stable_offset_not_above_last_stable_high_watermark:": {
            "last_stable_offset": 2,
            "last_stable_high_watermark": 1,
        },
        "retention_is_stated:": {"committed_offset": 1, "log_start_offset": 2},
    },
    "gold.findings": {
        "allowed_values:severity": {"severity": "dire"},
        "first_ts_not_above_last_ts:": {"last_ts": T0 - timedelta(seconds=1)},
        "has_evidence:": {"evidence": []},
    },
    "gold.incidents": {
        "allowed_values:severity": {"severity": "dire"},
        "allowed_values:state": {"state": "lost"},
        "first_ts_not_above_last_ts:": {"last_ts": T0 - timedelta(seconds=1)},
        "root_first:": {"findings": ["y", "x"]},
    },
}
SHADOWED: dict[str, dict[str, tuple[dict[str, Any], str]]] = {
    "bronze.frames": {"allowed_values:direction": ({"direction": "sideways"}, "direction_known:")},
    "gold.offset_timeline": {
        "at_least:lag": ({"lag": -1}, "lag_not_negative:"),
        "at_least:lag_read_committed": ({"lag_read_committed": -1}, "lag_read_committed_not_negative:"),
    },
}
"""Defects that a constraint of the registry knows as well, which fails with the expectation."""


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    require_java()
    return build_session("wirelake-tests")


def failed(spark: SparkSession, lake: Path, table: Table, rows: list[dict[str, Any]]) -> dict[str, int | None]:
    write(lake, table, rows)
    run = Run.at(datetime.now(timezone.utc))
    by_spark, in_process = (check_table(engine_for(one, Lake.at(lake)), table, run) for one in (spark, None))
    assert in_process == by_spark
    broken = [one for one in in_process if not one.success]
    for one in broken:
        assert one.rows_sql is not None
        assert query(lake, one.rows_sql).num_rows == one.rows_failed, one.rows_sql
    return {f"{one.name}:{one.column_name or ''}": one.rows_failed for one in broken}


def test_each_expectation_about_rows_has_a_query_that_lists_them(spark: SparkSession, tmp_path: Path) -> None:
    tables = [table for layer in LAYERS for table in tables_of(layer)]
    for table in tables:
        write(tmp_path, table, [])
    checks = [check for table in tables for check in checks_of(table)]
    assert {check.name for check in checks if rows_sql(check) is None} == {"has_columns"}
    for check in checks:
        if (sql := rows_sql(check)) is not None:
            assert query(tmp_path, sql).num_rows == 0, sql


def written(table: Table) -> set[str]:
    """Keys of the expectations of a table that do not follow from the registry."""
    return {check.key for check in checks_of(table) if check.is_written}


def test_each_written_expectation_has_a_planted_defect() -> None:
    tables = [table for layer in LAYERS for table in tables_of(layer)]
    shadowed = {name: set(keys) for name, keys in SHADOWED.items()}
    assert {t.full_name: written(t) for t in tables if written(t)} == {
        name: set(rows) | shadowed.get(name, set()) for name, rows in PLANTED.items()
    }
    assert set(WRITTEN) == set(PLANTED)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_makes_exactly_its_expectation_fail(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """All defects at once, a row each, amid sound rows: each expectation fails by its own row."""
    table = TABLES[name]
    sound, keys = SOUND[name], iter(range(1_000))

    def one(**values: Any) -> dict[str, Any]:
        number = next(keys)
        own = {key: f"k{number}" for key in table.key if key not in values and row(table)[key] == "x"}
        return row(table, **{**sound, **own, **values})

    shares = {key: values for key, values in PLANTED[name].items() if key.startswith("mostly_")}
    single = {key: values for key, values in PLANTED[name].items() if key not in shares}
    rows = [one(**values) for values in single.values()]
    plenty = [one() for _ in range(40 * len(rows))]
    assert failed(spark, tmp_path / "sound", table, plenty[:20]) == {}
    assert failed(spark, tmp_path / "planted", table, [*rows, *plenty]) == dict.fromkeys(single, 1)
    for key, values in shares.items():
        few = [one(**values) for _ in range(2)]
        assert failed(spark, tmp_path / "share", table, [*few, *plenty[:20]]) == {key: 2}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, keys in SHADOWED.items() for key in keys])
def test_a_defect_that_a_constraint_knows_too_makes_both_fail(
    spark: SparkSession, tmp_path: Path, name: str, key: str
) -> None:
    values, constraint = SHADOWED[name][key]
    found = failed(spark, tmp_path, TABLES[name], [row(TABLES[name], **{**SOUND[name], **values})])
    assert found == {key: 1, constraint: 1}
