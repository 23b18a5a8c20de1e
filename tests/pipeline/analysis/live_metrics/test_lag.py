"""The lag of a group now is one figure, in SQL as in Python."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis.live_metrics.lag import LAG_SECONDS_SQL, LAG_SQL, lag_now, lag_seconds_now
from pipeline.analysis.tables import SPARK_NAMES

_OFFSETS = st.integers(0, 2**40)


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(":memory:")
    for macro in SPARK_NAMES:
        opened.execute(f"CREATE MACRO {macro}")
    return opened


def test_it_is_the_same_in_both_languages(connection: duckdb.DuckDBPyConnection) -> None:
    lag_sql = LAG_SQL.format(end="high", end_then="high_then", lag="lag")

    @settings(deadline=None)
    @given(_OFFSETS, _OFFSETS, _OFFSETS, _OFFSETS)
    def same(lag: int, high_then: int, committed: int, high: int) -> None:
        sql = f"""
            SELECT {lag_sql} FROM (
                SELECT $lag::BIGINT AS lag, $then::BIGINT AS high_then, $committed::BIGINT AS committed_offset
            ) AS g, (SELECT $high::BIGINT AS high) AS l
        """
        values = {"lag": lag, "then": high_then, "committed": committed, "high": high}
        ((found,),) = connection.execute(sql, values).fetchall()
        assert lag_now(lag, high_then, committed, high) == found

    same()


@pytest.mark.parametrize(
    ("lag", "lag_then", "seconds_then", "age"),
    [(0, 5, 3.0, 0.0), (7, 5, 3.0, 43.0), (7, 0, 0.0, None), (7, 5, None, None), (None, None, None, None)],
)
def test_the_age_of_what_waits_too(
    connection: duckdb.DuckDBPyConnection, lag: int | None, lag_then: int | None, seconds_then: float | None,
    age: float | None,
) -> None:  # fmt: skip
    assert lag_seconds_now(lag, lag_then, seconds_then, 40_000_000) == age
    sql = f"""
        SELECT {LAG_SECONDS_SQL} FROM (
            SELECT $lag AS lag, $lag_then AS lag_then, $seconds::DOUBLE AS lag_seconds,
                TIMESTAMP '2026-01-01 00:00:00' AS group_seen, TIMESTAMP '2026-01-01 00:00:40' AS as_of
        ) AS s
    """
    ((found,),) = connection.execute(sql, {"lag": lag, "lag_then": lag_then, "seconds": seconds_then}).fetchall()
    assert found == age


def test_what_was_added_since_the_statement_waits_as_well() -> None:
    assert lag_now(134, 174, 21, 180) == 140  # 19 of the 153 offsets then were markers
    assert lag_now(134, 174, 21, 20) == 0  # the log was cut
    assert lag_now(134, 174, 21, 100) == 79  # and then grew again: each offset may be a record
    assert lag_now(134, None, 21, None) == 134
