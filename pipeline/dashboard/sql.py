"""What does the lake answer to a SQL query, without a JVM? DuckDB over the Delta tables, read-only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.dashboard.opened import opened_dataset
from pipeline.dashboard.read_only import read_only
from pipeline.dashboard.views import views
from pipeline.errors import UserError
from pipeline.open_tables import open_dataset
from pipeline.settings import SqlSettings
from pipeline.tables import TABLES, Table

_READ_ONLY = (
    # The query reads the lake and nothing else: no file, no network, no variable of this program.
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)
_SPARK_NAMES = (
    "explode(list) AS unnest(list)",
    "sequence(first, last, step) AS generate_series(first, last, step)",
    "unix_micros(ts) AS epoch_us(ts)",
)


_TYPES = {"string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMPTZ"}
"""DuckDB's name of a type of the registry, where it has another one."""


class Lake:
    """A lake's tables as ``schema.name`` in DuckDB, and the views by their names; those that are asked for.

    Attributes:
        connection: where they are.
        unreadable: tables that are there and cannot be read, with the reason, where that was asked for.
    """

    def __init__(self, place: Path | str, limits: SqlSettings, spill: Path | str | None) -> None:
        """Open the lake, without a table yet.

        Args:
            place: the lake's folder or URL.
            limits: what a query may take.
            spill: folder for temporary files; None: there are none.
        """
        self._place = str(place).rstrip("/") or "/"
        self._found: dict[str, bool] = {}
        self.unreadable: dict[str, str] = {}
        self.connection = duckdb.connect(":memory:")
        for setting, value in _settings(limits, spill).items():
            self.connection.execute(f"SET {setting} = {value}")
        for macro in _SPARK_NAMES:
            self.connection.execute(f"CREATE MACRO {macro}")
        for statement in _READ_ONLY:
            self.connection.execute(statement)

    def attach(self, wanted: Container[str] | None = None, *, readable: bool = False) -> None:
        """Open tables and views that are not open yet.

        Args:
            wanted: names in small letters, without schema; None: all.
            readable: go on with those that can be read, and note the others in ``unreadable``.

        Raises:
            UserError: there is no lake, or a table of these cannot be read or leads out of its folder; with
                ``readable``, all of them.
        """
        asked = [view for view in views() if wanted is None or view.name in wanted]
        for name, table in TABLES.items():
            if name in self._found:
                continue
            if wanted is None or table.name in wanted or any(name in view.sql for view in asked):
                try:
                    self._found[name] = self._attach(name, opened_dataset if readable else open_dataset)
                except UserError as error:
                    if not readable:
                        raise
                    self._found[name], self.unreadable[name] = False, str(error)
        if self.unreadable and not any(self._found.values()):
            raise UserError(next(iter(self.unreadable.values())))
        if not any(self._found.values()):
            if wanted is not None:
                self.attach()
                return
            raise UserError(
                f"there is no lake at {self._place}: name the folder that `wirelake stream --lake` wrote to, "
                "or run `wirelake stream --landing DIR --lake DIR --once` first"
            )
        for view in asked:
            try:
                self.connection.execute(f"CREATE OR REPLACE VIEW {view.name} AS {view.sql}")
            except duckdb.CatalogException:
                continue  # a table that it needs is not there yet

    def _attach(self, name: str, opened: Callable[[str, Table], Any | None]) -> bool:
        table = TABLES[name]
        if (dataset := opened(self._place, table)) is None:
            return False
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
        self.connection.register(f"delta_{table.schema}_{table.name}", dataset)
        columns = ", ".join(["*", *_without(table, dataset.schema.names)])
        self.connection.execute(f"CREATE VIEW {name} AS FROM delta_{table.schema}_{table.name} SELECT {columns}")
        return True


def _without(table: Table, names: Iterable[str]) -> list[str]:
    """The columns that a table of an older release lacks, as nulls of their type."""
    known = set(names)
    return [f'NULL::{_type(one.type)} AS "{one.name}"' for one in table.columns if one.name not in known]


def _type(name: str) -> str:
    inner = name.removeprefix("array<").removesuffix(">")
    return f"{_TYPES.get(inner, inner)}{'[]' if name.startswith('array<') else ''}"


def _settings(limits: SqlSettings, spill: Path | str | None) -> dict[str, str]:
    folder = str(spill or "").replace("'", "''")
    return {
        "TimeZone": "'UTC'",
        "memory_limit": f"'{limits.memory_mb}MiB'",
        "threads": str(min(limits.threads, os.cpu_count() or 1)),
        "temp_directory": f"'{folder}'",
        "max_temp_directory_size": f"'{limits.temp_mb if spill else 0}MiB'",
    }


@cache
def _spill() -> tempfile.TemporaryDirectory[str]:
    """A private folder for what this process's own queries spill; it goes away when the process ends."""
    return tempfile.TemporaryDirectory(prefix="wirelake-spill-")


def connect(place: Path | str, limits: SqlSettings | None = None) -> duckdb.DuckDBPyConnection:
    """A connection in which the lake's tables are ``schema.name`` and the views have their names.

    It is for queries of this program; :func:`pipeline.dashboard.ask.ask` asks those of others.

    Args:
        place: the lake's folder or URL.
        limits: what a query may take; None: the defaults.

    Raises:
        UserError: there is no lake, or it cannot be read.
    """
    return _opened(place, limits or SqlSettings(), readable=False).connection


@dataclass(frozen=True, slots=True)
class Readable:
    """What can be read of a lake.

    Attributes:
        connection: in which the tables that can be read are.
        unreadable: the others that are there, with the reason.
    """

    connection: duckdb.DuckDBPyConnection
    unreadable: Mapping[str, str]


def connect_readable(place: Path | str, limits: SqlSettings) -> Readable:
    """A connection as :func:`connect` gives it, to all of a lake that can be read.

    Args:
        place: the lake's folder or URL.
        limits: what a query may take.

    Raises:
        UserError: there is no lake, or nothing of it can be read.
    """
    lake = _opened(place, limits, readable=True)
    return Readable(lake.connection, lake.unreadable)


def _opened(place: Path | str, limits: SqlSettings, *, readable: bool) -> Lake:
    lake = Lake(place, limits, _spill().name if limits.temp_mb else None)
    try:
        lake.attach(readable=readable)
    except UserError:
        lake.connection.close()
        raise
    return lake


def open_query(lake: Lake, sql: str, most: int | None, batch: int) -> pa.RecordBatchReader:
    """Run one query and return its rows as they come; the tables that it names are opened before.

    Args:
        lake: whose connection is for this query alone.
        sql: one query.
        most: rows after which it ends; None: all.
        batch: rows that come at once.

    Raises:
        UserError: there is no lake, it is not one query that only reads, or it does not run; names the tables and
            views that there are.
    """
    connection = lake.connection
    try:
        query = read_only(connection, sql)
        lake.attach(None if query.asks_for_all else query.words)
        connection.execute("BEGIN TRANSACTION READ ONLY")  # should a write come through all the same
        relation = connection.sql(query.sql)
        return (relation if most is None else relation.limit(most)).to_arrow_reader(batch)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        with suppress(duckdb.Error):  # the query was not even begun
            connection.execute("ROLLBACK")
        lake.attach()
        raise UserError(f"{error}\n\n{_names(connection)}") from error


def query(place: Path | str, sql: str, limits: SqlSettings | None = None) -> pa.Table:
    """The answer of the lake to ``sql``, a query of this program: it may take as long as it needs.

    Args:
        place: the lake's folder or URL.
        sql: one query in DuckDB's SQL; tables are ``schema.name`` (see :mod:`pipeline.tables`), times are UTC.
        limits: what it may take; None: the defaults.

    Raises:
        UserError: there is no lake, or the query does not run.
    """
    limits = limits or SqlSettings()
    lake = Lake(place, limits, _spill().name if limits.temp_mb else None)
    with lake.connection:
        return open_query(lake, sql, None, 1_000_000).read_all()


def _names(connection: duckdb.DuckDBPyConnection) -> str:
    known = connection.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, 'delta_') "
        "ORDER BY ALL"
    ).fetchall()
    tables = [f"{schema}.{name}" for schema, name in known if schema != "main"]
    return f"tables: {', '.join(tables)}\nviews: {', '.join(name for schema, name in known if schema == 'main')}"
