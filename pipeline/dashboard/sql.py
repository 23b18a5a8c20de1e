"""What does the lake answer to a SQL query, without a JVM? DuckDB over the Delta tables, read-only."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from threading import Event, Timer

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError, TableNotFoundError

from pipeline.dashboard.views import views
from pipeline.delta_dataset import open_dataset
from pipeline.errors import UserError
from pipeline.tables import TABLES

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
_MEMORY = "50%"
"""DuckDB's share of the machine's memory, with room beside it for what reads the tables and holds the answer."""
_BATCH = 16
"""Rows that are read at once where an answer may be left before its end: frames may have a MiB each."""
_QUERIES = ("SELECT", "EXPLAIN")


class TooSlowError(UserError):
    """A query was stopped, for it took longer than it may."""


def connect(lake: Path | str) -> duckdb.DuckDBPyConnection:
    """A connection in which the lake's tables are ``schema.name`` and the views have their names.

    Args:
        lake: the lake's folder or URL.

    Raises:
        UserError: there is no lake.
    """
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET memory_limit = '{_MEMORY}'")
    for macro in _SPARK_NAMES:
        connection.execute(f"CREATE MACRO {macro}")
    found = [name for name in TABLES if _attach(connection, str(lake).rstrip("/"), name)]
    if not found:
        connection.close()
        raise UserError(
            f"there is no lake at {lake}: name the folder that `wirelake stream --lake` wrote to, "
            "or run `wirelake stream --landing DIR --lake DIR --once` first"
        )
    for view in views():
        try:
            connection.execute(f"CREATE VIEW {view.name} AS {view.sql}")
        except duckdb.CatalogException:
            continue  # a table that it needs is not there yet
    for statement in _READ_ONLY:
        connection.execute(statement)
    return connection


def _attach(connection: duckdb.DuckDBPyConnection, lake: str, name: str) -> bool:
    table = TABLES[name]
    try:
        dataset = open_dataset(f"{lake}/{table.path}")
    except TableNotFoundError:
        return False
    except (DeltaError, OSError) as error:
        raise UserError(f"cannot read {lake}/{table.path}: {error}") from error
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
    connection.register(f"delta_{table.schema}_{table.name}", dataset)
    connection.execute(f"CREATE VIEW {name} AS FROM delta_{table.schema}_{table.name}")
    return True


def open_query(
    connection: duckdb.DuckDBPyConnection, sql: str, most: int | None = None, batch: int = 1_000_000
) -> pa.RecordBatchReader:
    """Run one query and return its rows as they come.

    Args:
        connection: to the lake, see :func:`connect`.
        sql: one query.
        most: rows after which it ends; None: all.
        batch: rows that come at once.

    Raises:
        UserError: it is not one query, or it does not run; says which tables and views there are.
    """
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type.name not in _QUERIES:
            raise UserError("give one query: the lake is read-only, so it begins with SELECT, WITH, FROM or DESCRIBE")
        relation = connection.sql(sql)
        return (relation if most is None else relation.limit(most)).to_arrow_reader(batch)
    except duckdb.Error as error:
        raise UserError(f"{error}\n\n{_names(connection)}") from error


def first_rows(connection: duckdb.DuckDBPyConnection, sql: str, most: int, seconds: float) -> Generator[pa.RecordBatch]:
    """Run one query and yield its first rows, a few at a time: whoever has seen enough closes the iterator.

    Args:
        connection: to the lake, see :func:`connect`.
        sql: one query.
        most: rows after which it ends.
        seconds: after which the query is stopped.

    Raises:
        TooSlowError: it was stopped.
        UserError: it is not one query, or it does not run.
    """
    is_late = Event()

    def stop() -> None:
        is_late.set()
        connection.interrupt()

    timer = Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        with open_query(connection, sql, most, _BATCH) as reader:
            for batch in reader:
                if is_late.is_set():  # too late to be interrupted, or between two batches
                    raise TooSlowError(f"stopped after {seconds} seconds")
                yield batch
    except (UserError, duckdb.Error, pa.ArrowException, OSError) as error:
        # The reader has one error for all that can go wrong while rows come: OSError.
        if is_late.is_set():
            raise TooSlowError(f"stopped after {seconds} seconds") from error
        raise UserError(str(error)) from error
    finally:
        timer.cancel()


def query(lake: Path | str, sql: str) -> pa.Table:
    """The answer of the lake to ``sql``.

    Args:
        lake: the lake's folder or URL.
        sql: one query in DuckDB's SQL; tables are ``schema.name`` (see :mod:`pipeline.tables`), times are UTC.

    Raises:
        UserError: there is no lake, or the query does not run.
    """
    with connect(lake) as connection:
        return open_query(connection, sql).read_all()


def _names(connection: duckdb.DuckDBPyConnection) -> str:
    known = connection.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, 'delta_') "
        "ORDER BY ALL"
    ).fetchall()
    tables = [f"{schema}.{name}" for schema, name in known if schema != "main"]
    return f"tables: {', '.join(tables)}\nviews: {', '.join(name for schema, name in known if schema == 'main')}"
