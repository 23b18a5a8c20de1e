"""Answers SQL queries over a lake without a JVM: DuckDB over the Delta tables, read-only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import pyarrow as pa

from pipeline.analysis.fit import schema_of
from pipeline.analysis.tables import SPARK_NAMES
from pipeline.config.settings import SqlSettings
from pipeline.dashboard.clusters import of_cluster
from pipeline.dashboard.open_tables import Marks, marks_of, opened_table
from pipeline.dashboard.read_only import read_only
from pipeline.dashboard.views import View, views
from pipeline.errors import UserError, no_lake
from pipeline.lake.delta_reader import OpenTable, open_table
from pipeline.tables import BODY_NAMES, EXCHANGES, EXCHANGES_WITH_BODIES, TABLES, Table

_MOST_ANSWERS = 200
"""Answers that are kept: a picture's are some hundred kilobytes."""
T = TypeVar("T")


class Answers:
    """What was asked of tables that do not change, for all who ask; of very many, those of late."""

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}

    def once(self, ask: Callable[..., T], connection: duckdb.DuckDBPyConnection, *about: Any) -> T:
        """What ``ask`` answers, asked once.

        Args:
            ask: called with the connection and ``about``; what it returns is not changed by anybody.
            connection: one of those to the tables.
            about: what the answer depends on, distinguished by value.
        """
        key = ask, about
        with suppress(KeyError):
            return cast("T", self._known[key])
        answer = ask(connection, *about)
        if len(self._known) >= _MOST_ANSWERS:
            self._known.clear()
        self._known[key] = answer
        return answer


class Lake:
    """A lake's tables as ``schema.name`` in DuckDB, and the views by their names; those that are asked for.

    Attributes:
        place: the lake's folder or URL.
        connection: where they are.
        unreadable: tables that are there and cannot be read, with the reason, where that was asked for.
        answers: what was asked of the tables, which do not change.
    """

    def __init__(
        self, place: Path | str, limits: SqlSettings, spill: Path | str | None, *, of_one_cluster: bool = False
    ) -> None:
        """Open the lake, without a table yet.

        Args:
            place: the lake's folder or URL.
            limits: what a query may take.
            spill: folder for temporary files; None: there are none.
            of_one_cluster: tables show what :func:`pipeline.dashboard.clusters.show_only` is given.
        """
        self.place = str(place).rstrip("/") or "/"
        self._of_one_cluster = of_one_cluster
        self._found: dict[str, bool] = {}
        self._opened: dict[str, OpenTable] = {}
        self.unreadable: dict[str, str] = {}
        self.answers = Answers()
        self.connection = _new_connection(limits, spill)

    def seal(self) -> None:
        """From now on queries read the files of the open tables and nothing else; no other table can be opened."""
        paths = [path for table in self._opened.values() if table.files for path in table.files.paths]
        self.connection.execute("SET allowed_paths = $paths", {"paths": paths})
        _close_off(self.connection)

    def another_connection(self) -> duckdb.DuckDBPyConnection:
        """One more connection to the same tables, with variables and temporary tables of its own."""
        connection = self.connection.cursor()
        for source, table in self._opened.items():
            _make_known(connection, source, table)
        return connection

    def attach(self, wanted: Container[str] | None = None, *, readable: bool = False) -> None:
        """Open tables and views that are not open yet.

        Args:
            wanted: names in small letters, without schema; None: all.
            readable: continue with those that can be read, and note the others in ``unreadable``.

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
                    self._found[name] = self._attach(name, opened_table if readable else open_table)
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
            raise no_lake(self.place)
        for view in asked:
            try:
                self.connection.execute(f"CREATE OR REPLACE VIEW {view.name} AS {self._sql_of(view)}")
            except duckdb.CatalogException:
                continue  # a table that it needs is not there yet

    def _sql_of(self, view: View) -> str:
        """The query of a view; in lakes of layout 2 exchanges hold their bodies themselves."""
        held = self._opened.get("silver_exchanges")
        if view.name == EXCHANGES_WITH_BODIES.name and held is not None and BODY_NAMES & set(held.schema.names):
            return f"FROM {EXCHANGES.full_name}"
        return view.sql

    def _attach(self, name: str, opened: Callable[[str, Table], OpenTable | None]) -> bool:
        table = TABLES[name]
        if (found := opened(self.place, table)) is None:
            return False
        source = f"{table.schema}_{table.name}"
        self._opened[source] = found
        self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
        rows = _make_known(self.connection, source, found)
        columns = found.columns_sql(table)
        try:
            which = f" WHERE {of_cluster(table)}" if self._of_one_cluster else ""
            self.connection.execute(f"CREATE VIEW {name} AS FROM {rows} SELECT {columns}{which}")
        except duckdb.Error as error:
            raise UserError(f"cannot read {self.place}/{table.path}: {error}") from error
        return True


def _make_known(connection: duckdb.DuckDBPyConnection, source: str, table: OpenTable) -> str:
    """Let a connection find the rows of a table; returns what they are called in SQL."""
    if table.files is None:
        connection.register(f"delta_{source}", table.dataset)
        return f"delta_{source}"
    connection.execute(f"SET VARIABLE files_{source} = $paths", {"paths": table.files.paths})
    return table.files.sql(f"getvariable('files_{source}')")


def _new_connection(limits: SqlSettings, spill: Path | str | None) -> duckdb.DuckDBPyConnection:
    """A connection that has no table yet."""
    connection = duckdb.connect(":memory:")
    for setting, value in _settings(limits, spill).items():
        connection.execute(f"SET GLOBAL {setting} = {value}")  # also of further connections to it
    know_spark_names(connection)
    return connection


def _close_off(connection: duckdb.DuckDBPyConnection) -> None:
    """From now on it opens no file that it was not allowed to before."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def know_spark_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection know the functions that views have of Spark."""
    for macro in SPARK_NAMES:
        connection.execute(f"CREATE MACRO {macro}")


def _settings(limits: SqlSettings, spill: Path | str | None) -> dict[str, str]:
    folder = str(spill or "").replace("'", "''")
    return {
        "TimeZone": "'UTC'",
        "memory_limit": f"'{limits.memory_mb}MiB'",
        "python_enable_replacements": "false",
        "parquet_metadata_cache": "true",
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

    It is for queries of this program; :func:`pipeline.dashboard.query_sandbox.ask.ask` asks those of others.

    Args:
        place: the lake's folder or URL.
        limits: what a query may take; None: the defaults.

    Raises:
        UserError: there is no lake, or it cannot be read.
    """
    return _opened(place, limits or SqlSettings(), readable=False).connection


def connect_tables(tables: Mapping[str, pa.Table], limits: SqlSettings | None = None) -> duckdb.DuckDBPyConnection:
    """A connection as :func:`connect` gives it, to tables in memory, without a lake.

    Args:
        tables: by full name; those of the registry that are missing are empty.
        limits: what a query may take; None: the defaults.
    """
    limits = limits or SqlSettings()
    connection = _new_connection(limits, _spill().name if limits.temp_mb else None)
    for name, table in TABLES.items():
        rows = tables.get(name)
        source = f"rows_{table.schema}_{table.name}"
        connection.register(source, schema_of(table).empty_table() if rows is None else rows)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
        connection.execute(f"CREATE VIEW {name} AS FROM {source}")
    for view in views():
        connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
    _close_off(connection)
    return connection


@dataclass(frozen=True, slots=True)
class Readable:
    """What can be read of a lake.

    Attributes:
        connection: in which the tables that can be read are.
        unreadable: the others that are there, with the reason.
        answers: what was asked of them before, by this or another connection to the lake as it is now.
    """

    connection: duckdb.DuckDBPyConnection
    unreadable: Mapping[str, str]
    answers: Answers


_shared: tuple[str, SqlSettings, Marks, Lake] | None = None
"""The lake that was opened last, and how its logs looked then."""


def connect_readable(place: Path | str, limits: SqlSettings) -> Readable:
    """A connection as :func:`connect` gives it, to all of a lake that can be read, or to one cluster in it.

    Connections of one process share what has not changed: tables, and what is known of their files.

    Args:
        place: the lake's folder or URL.
        limits: what a query may take.

    Raises:
        UserError: there is no lake, or nothing of it can be read.
    """
    global _shared  # noqa: PLW0603 - one lake for all sessions of the page
    marks = marks_of(str(place))
    if marks is None or _shared is None or _shared[:3] != (str(place), limits, marks):
        lake = _opened(place, limits, readable=True)
        _shared = None if marks is None else (str(place), limits, marks, lake)
    else:
        lake = _shared[3]
    return Readable(lake.another_connection(), lake.unreadable, lake.answers)


def _opened(place: Path | str, limits: SqlSettings, *, readable: bool) -> Lake:
    lake = Lake(place, limits, _spill().name if limits.temp_mb else None, of_one_cluster=readable)
    try:
        lake.attach(readable=readable)
    except UserError:
        lake.connection.close()
        raise
    lake.seal()
    return lake


def open_query(lake: Lake, sql: str, most: int | None, batch: int) -> pa.RecordBatchReader:
    """Run one query and return its rows as they come; the tables that it names are opened before.

    Args:
        lake: nothing of it is open yet, and its connection is for this query alone.
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
        lake.seal()
        connection.execute("BEGIN TRANSACTION READ ONLY")  # should a write come through all the same
        relation = connection.sql(query.sql)
        return (relation if most is None else relation.limit(most)).to_arrow_reader(batch)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise UserError(f"{error}\n\n{_names(lake.place)}") from error


def query(place: Path | str, sql: str, limits: SqlSettings | None = None) -> pa.Table:
    """Answer a query from the tables and views of a lake, read-only. It may take as long as it needs.

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


def _names(place: str) -> str:
    """The tables and views that there are, in words."""
    lake = Lake(place, SqlSettings(), None)
    with lake.connection as connection:
        lake.attach()
        known = connection.execute(
            "SELECT schema_name, view_name FROM duckdb_views() "
            "WHERE NOT internal AND NOT starts_with(view_name, 'delta_') ORDER BY ALL"
        ).fetchall()
    tables = [f"{schema}.{name}" for schema, name in known if schema != "main"]
    return f"tables: {', '.join(tables)}\nviews: {', '.join(name for schema, name in known if schema == 'main')}"
