"""The query that lists the rows which violate an expectation, as one types it after ``wirelake sql``."""

from __future__ import annotations

from shlex import quote

from pipeline.quality.suites import Check

_DUCKDB = {"`": '"', "size(": "len(", "to_date(ts)": "CAST(ts AS DATE)", "findings[0]": "findings[1]"}
"""What conditions write as Spark does, and how DuckDB, which answers ``wirelake sql``, writes it."""


def rows_sql(check: Check) -> str | None:
    """A SELECT for DuckDB that lists the rows which violate ``check``; None if it is not about rows.

    Of ``unique_key`` it lists each key that several rows share, with how many they are.
    """
    name = check.table.full_name
    if check.name == "unique_key":
        key = ", ".join(f'"{column}"' for column in check.table.key)
        return f"SELECT {key}, count(*) AS rows FROM {name} GROUP BY ALL HAVING count(*) > 1"  # noqa: S608 - names of our registry
    if check.violated is None:
        return None
    return f"FROM {name} WHERE {in_duckdb(check.violated)}"


def command(sql: str) -> str:
    """What one types to see the rows of a query."""
    return f"wirelake sql {quote(sql)}"


def in_duckdb(condition: str) -> str:
    """A condition over rows as DuckDB writes it."""
    for spark, duckdb in _DUCKDB.items():
        condition = condition.replace(spark, duckdb)
    return condition
