"""The views: one ``.sql`` file each, in the part of SQL that Spark and DuckDB understand alike.

That part has no quoted identifiers (columns are qualified instead: ``t.offset``), no engine's own percentile, and
``explode``, ``sequence`` and ``unix_micros``, which DuckDB learns as macros.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
            found.append(View(file.name.removesuffix(".sql"), question, sql))
    return tuple(found)


def register_in_spark(spark: SparkSession) -> None:
    """Make every view known to the session; its catalog has the tables (pipeline.streaming.storage.lake.register)."""
    for view in views():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view.name} AS {view.sql}")
