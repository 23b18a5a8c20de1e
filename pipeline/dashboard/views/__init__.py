"""The views: one ``.sql`` file each, in the part of SQL that Spark and DuckDB understand alike.

That part has no quoted identifiers (columns are qualified instead: ``t.offset``), no engine's own percentile, and
``explode``, ``sequence``, ``unix_micros``, ``try_add`` and ``try_subtract`` (null where 64 bits do not hold
the result), which DuckDB learns as macros.

The two engines define functions of their own each in another way, so what views share is text: ``{lag}`` and
``{lag_read_committed}`` stand for how far behind a group ``g`` is, on a log ``l`` that may have continued since;
``{with_bodies}`` for exchanges joined with their frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pipeline.analysis.bodies import with_bodies_sql
from pipeline.analysis.live_metrics.lag import LAG_SECONDS_SQL, LAG_SQL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAG_NOW = LAG_SQL.format(end="high_watermark", end_then="high_watermark_then", lag="lag")
_LAG_HELD = LAG_SQL.format(end="last_stable_offset", end_then="last_stable_then", lag="lag_read_committed")
# A last stable offset below the end holds readers only if the response that stated it shows so; else it is just older.
_LAG_READ_COMMITTED = f"""CASE
  WHEN l.last_stable_offset >= l.high_watermark OR l.last_stable_offset IS NOT NULL AND {_LAG_NOW} = 0 THEN {_LAG_NOW}
  WHEN l.last_stable_offset < l.last_stable_high_watermark AND l.last_stable_offset >= g.committed_offset
    THEN {_LAG_HELD}
END"""
_SHARED = {
    "lag": _LAG_NOW, "lag_read_committed": _LAG_READ_COMMITTED, "lag_seconds": LAG_SECONDS_SQL,
    "with_bodies": with_bodies_sql("silver.exchanges", "bronze.frames"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """A view.

    Attributes:
        question: what it answers; the first line of its file.
        sql: a query over ``schema.table`` names of the registry.
    """

    name: str
    question: str
    sql: str


@cache
def views() -> tuple[View, ...]:
    """All views, by name."""
    found = []
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            question = sql.splitlines()[0].removeprefix("--").strip()
            found.append(View(file.name.removesuffix(".sql"), question, sql.format(**_SHARED)))
    return tuple(found)


def register_in_spark(spark: SparkSession) -> None:
    """Make every view known to the session; its catalog has the tables (pipeline.streaming.storage.lake.register)."""
    for view in views():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.sql}")
