"""SQL statements that make a lake's tables and views, with their comments, known to the catalog of another engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from shlex import quote

from pipeline.analysis.tables import SPARK_NAMES
from pipeline.dashboard.views import View, views
from pipeline.errors import UserError, no_lake
from pipeline.lake.delta_reader import schema_stated
from pipeline.lake.migration import migrations
from pipeline.lake.s3 import S3Place
from pipeline.tables import TABLES, Table
from pipeline.tables.model import quoted as spark_text

VIEWS = "views"
"""The schema of the views, in every catalog."""
_SCHEMAS = tuple(dict.fromkeys(table.schema for table in TABLES.values()))
_TABLE_NAME = re.compile(rf"\b({'|'.join(_SCHEMAS)})\.([a-z_]+)\b")
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


class Engine(str, Enum):
    """Whose SQL it is."""

    SPARK = "spark"
    DUCKDB = "duckdb"
    TRINO = "trino"


def tables_in(lake: str) -> tuple[Table, ...]:
    """The tables that a lake has.

    Args:
        lake: its folder or URL.

    Raises:
        UserError: it has none, one cannot be read, or they are not as this release writes them.
    """
    there = tuple(table for table in TABLES.values() if schema_stated(lake, table) is not None)
    if not there:
        raise no_lake(lake)
    if migrations(lake):
        raise UserError(f"{lake} was written by an earlier release: run `wirelake migrate --lake {quote(lake)}` first")
    return there


def absolute(place: str) -> str:
    """A lake's folder as every program finds it, wherever it is; a URL as it is."""
    return place if "://" in place else str(Path(place).absolute())


def statements(engine: Engine, lake: str, tables: Iterable[Table], prefix: str = "") -> Iterator[str]:
    """Statements without their semicolon, in order.

    They can be run again. Trino gets no views: those use functions that it lacks.

    Args:
        engine: who runs them.
        lake: its folder (absolute) or URL.
        tables: those that the lake has.
        prefix: before each schema's name.
    """
    return _MAKE[engine](_location(engine, lake), tuple(tables), prefix)


def _location(engine: Engine, lake: str) -> str:
    """The lake as an engine names it; of S3 without settings, which each engine has of its own."""
    s3 = S3Place.of(lake)
    if s3 is None:
        return lake.rstrip("/")
    return s3.for_hadoop if engine is Engine.SPARK else s3.for_delta


def read_only_statements(lake: str, tables: Iterable[Table]) -> Iterator[str]:
    """Statements for a Spark session in which tables are views, too: no client deletes rows by their names."""
    lake, known = _location(Engine.SPARK, lake), tuple(tables)
    yield from _spark_schemas(known, "")
    for table in known:
        columns = ", ".join(f"`{column.name}` COMMENT {spark_text(column.comment)}" for column in table.columns)
        asked = ", ".join(f"`{column.name}`" for column in table.columns)
        yield (
            f"CREATE OR REPLACE VIEW {table.full_name} ({columns}) COMMENT {spark_text(table.comment)} AS "
            f"SELECT {asked} FROM delta.`{lake}/{table.path}`"
        )
    yield from _spark_views(known, "")


def views_over(tables: Iterable[Table]) -> Iterator[View]:
    """The views whose tables are all there."""
    there = {table.full_name for table in tables}
    for view in views():
        if {match[0] for match in _TABLE_NAME.finditer(view.sql)} <= there:
            yield view


def _spark(lake: str, tables: tuple[Table, ...], prefix: str) -> Iterator[str]:
    yield from _spark_schemas(tables, prefix)
    for table in tables:
        name = f"{prefix}{table.full_name}"
        yield f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {spark_text(f'{lake}/{table.path}')}"
        yield f"COMMENT ON TABLE {name} IS {spark_text(table.comment)}"
    yield from _spark_views(tables, prefix)


def _spark_schemas(tables: tuple[Table, ...], prefix: str) -> Iterator[str]:
    for schema in _schemas(tables):
        yield f"CREATE SCHEMA IF NOT EXISTS {prefix}{schema}"


def _spark_views(tables: tuple[Table, ...], prefix: str) -> Iterator[str]:
    for view in views_over(tables):
        yield (
            f"CREATE OR REPLACE VIEW {prefix}{VIEWS}.{view.name} COMMENT {spark_text(view.question)} AS "
            f"{_query(view, prefix)}"
        )


def _duckdb(lake: str, tables: tuple[Table, ...], prefix: str) -> Iterator[str]:
    yield "INSTALL delta"
    yield "LOAD delta"
    for macro in SPARK_NAMES:
        yield f"CREATE OR REPLACE MACRO {macro}"
    for schema in _schemas(tables):
        yield f"CREATE SCHEMA IF NOT EXISTS {prefix}{schema}"
    for table in tables:
        name = f"{prefix}{table.full_name}"
        asked = ", ".join(f'"{column.name}"' for column in table.columns)
        yield f"CREATE OR REPLACE VIEW {name} AS SELECT {asked} FROM delta_scan({_text(f'{lake}/{table.path}')})"
        yield from _comments(name, table.comment, {column.name: column.comment for column in table.columns})
    for view in views_over(tables):
        name = f"{prefix}{VIEWS}.{view.name}"
        yield f"CREATE OR REPLACE VIEW {name} AS {_query(view, prefix)}"
        yield from _comments(name, view.question, {})


def _comments(view: str, comment: str, columns: Mapping[str, str]) -> Iterator[str]:
    yield f"COMMENT ON VIEW {view} IS {_text(comment)}"
    for name, text in columns.items():
        yield f'COMMENT ON COLUMN {view}."{name}" IS {_text(text)}'


def _trino(lake: str, tables: tuple[Table, ...], prefix: str) -> Iterator[str]:
    for schema in dict.fromkeys(table.schema for table in tables):
        yield f"CREATE SCHEMA IF NOT EXISTS {prefix}{schema}"
    for table in tables:
        yield (
            f"CALL system.register_table(schema_name => {_text(prefix + table.schema)}, "
            f"table_name => {_text(table.name)}, table_location => {_text(f'{lake}/{table.path}')})"
        )


def _schemas(tables: tuple[Table, ...]) -> Iterator[str]:
    yield from dict.fromkeys(table.schema for table in tables)
    yield VIEWS


def _query(view: View, prefix: str) -> str:
    """The view's query without comments, whose quotes and semicolons upset some clients."""
    sql = _COMMENT.sub("", view.sql).strip()
    return _TABLE_NAME.sub(rf"{prefix}\1.\2", sql) if prefix else sql


def _text(text: str) -> str:
    """A string literal of standard SQL."""
    return "'" + text.replace("'", "''") + "'"


_MAKE: Mapping[Engine, Callable[[str, tuple[Table, ...], str], Iterator[str]]] = {
    Engine.SPARK: _spark,
    Engine.DUCKDB: _duckdb,
    Engine.TRINO: _trino,
}
