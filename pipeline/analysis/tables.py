"""Asks Arrow tables in SQL, by DuckDB within this process; what follows from the rows is plain Python."""

from __future__ import annotations

import atexit
import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from decoder.model import CONNECTION, NO_LOSS, FrameFlags

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # a second one gains nothing on what fits a group, and would change the order of sums of doubles
    "default_null_order": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "asof_loop_join_threshold": 0,  # a join by time compares all rows with all where DuckDB expects few, and errs
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}

ADDRESS = {
    side: f"CASE WHEN {side}_ip LIKE '%:%' THEN '[' || {side}_ip || ']' ELSE {side}_ip END || ':' || {side}_port"
    for side in ("client", "server")
}
"""``ip:port`` of one side of a connection as SQL, with brackets around an IPv6 address."""


def address(host: str, port: int) -> str:
    """``host:port`` of an IP address or a name; IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


IS_LOSS = " AND ".join(f"NOT starts_with(method, '{begin}')" for begin in NO_LOSS)
"""Whether a row of ``bronze.gaps`` is a loss, as SQL: not of another protocol, nor under way when the capture began."""
IS_CONNECTION = f"method = '{CONNECTION}'"
"""Whether a row of ``bronze.gaps`` states what became of a connection, as SQL."""
SERVICE_US = f"""
    CASE WHEN coalesce(response_flags, 0) & {int(FrameFlags.AFTER_GAP)} = 0 THEN coalesce(service_us, latency_us) END
"""
"""How long a server took for an exchange (columns of ``silver.exchanges``), as SQL, µs; null if that is not known.

Waiting for the answers to earlier requests of the connection is left out. Rows of older releases do not state it: there
the latency stands for it.
"""


def numbers(*members: int) -> tuple[int, ...]:
    """Apis or errors as a tuple that reads as SQL: in one of an enum's members their names would appear."""
    return tuple(map(int, members))


SPARK_NAMES = (
    "explode(list) AS unnest(list)",
    "sequence(first, last, step) AS generate_series(first, last, step)",
    "unix_micros(ts) AS epoch_us(ts)",
    "array_join(list, separator) AS array_to_string(list, separator)",
    "try_add(a, b) AS TRY_CAST(a::HUGEINT + b::HUGEINT AS BIGINT)",
    "try_subtract(a, b) AS TRY_CAST(a::HUGEINT - b::HUGEINT AS BIGINT)",
)
"""Functions of Spark that views and checks use, as DuckDB makes them."""
_HOST_OF = r"CREATE MACRO host_of(address) AS regexp_replace(address, ':\d+$', '')"
_ROWS_AT_ONCE = 20_000
_SMALL = 10_000
"""Up to this many rows are copied where they are asked often: a copy costs less than what queries save by it."""

Row = Any
"""A named tuple with the columns of a query. Times are µs since the epoch: a query never returns a timestamp."""


_IDLE: list[duckdb.DuckDBPyConnection] = []
"""Unused connections, each to an empty database of its own."""


@atexit.register
def _close_idle() -> None:
    """Before the interpreter ends: DuckDB complains of what it finds afterwards."""
    while _IDLE:
        _IDLE.pop().close()


@dataclass(frozen=True, slots=True)
class InFiles:
    """Rows that are in Parquet files, of which a query reads what it asks for, when it does.

    Attributes:
        paths: the files, absolute.
        sql: a query that gives the rows; ``$paths`` in it stands for the files.
        beside: tables in memory that the query reads as well, by name.
    """

    paths: Sequence[str]
    sql: str
    beside: Mapping[str, pa.Table] = field(default_factory=dict)


Some: TypeAlias = "pa.Table | ds.Dataset | InFiles"
"""Rows in memory, or such that are read as queries ask for them. Files are read several times as fast as a dataset."""


_FRESH, _REGISTERED = "fresh_rows", "REGISTERED"


def _is_typed(schema: pa.Schema) -> bool:
    """Whether each column has a type: columns that are null alone become numbers in DuckDB's own tables."""
    return not any("null" in str(field.type).replace("not null", "") for field in schema)


def _connected(paths: Sequence[str] = ()) -> duckdb.DuckDBPyConnection:
    """A connection that reads these files, and no other file; days are those of UTC."""
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(_HOST_OF)
    if paths:
        connection.execute("LOAD parquet")
        connection.execute("SET parquet_metadata_cache = true")
        connection.execute("SET allowed_paths = $paths", {"paths": list(paths)})
    connection.execute("SET enable_external_access = false")
    return connection


class Tables:
    """Tables by name. Queries may call ``host_of(address)``: ``ip:port`` without its port.

    Nulls come first where the order ascends and last where it descends, as in Spark. A query that needs an order asks
    for one: without, rows come in any.

    Args:
        tables: rows by name.
        asked_often: many queries will follow. DuckDB plans those over tables of its own in half the time, so small ones
            are copied.
    """

    def __init__(self, tables: Mapping[str, Some], *, asked_often: bool = False) -> None:
        paths = [path for some in tables.values() if isinstance(some, InFiles) for path in some.paths]
        self._reads_files = bool(paths)
        self._connection = _IDLE.pop() if _IDLE and not paths else _connected(paths)
        self._asked_often = asked_often
        self._kinds: dict[str, str] = {}
        for name, table in tables.items():
            self.add(name, table)

    def add(self, name: str, table: Some) -> None:
        """Name a further table, or replace one. Files can be read only of the tables that were there from the first."""
        if isinstance(table, InFiles):
            for other, rows in table.beside.items():
                self.add(other, rows)
            self._connection.execute(f"SET VARIABLE files_{name} = $paths", {"paths": list(table.paths)})
            self.view(name, table.sql.replace("$paths", f"getvariable('files_{name}')"))
            return
        self._free(name)
        if self._asked_often and isinstance(table, pa.Table) and table.num_rows <= _SMALL and _is_typed(table.schema):
            self._connection.register(_FRESH, table)
            try:
                self._create(name, f"FROM {_FRESH}")
            finally:
                self._connection.unregister(_FRESH)
            return
        self._connection.register(name, table)
        self._kinds[name] = _REGISTERED

    def view(self, name: str, sql: str) -> None:
        """Name a query."""
        self._free(name)
        self._connection.execute(f"CREATE VIEW {name} AS {sql}")
        self._kinds[name] = "VIEW"

    def _create(self, name: str, sql: str, **parameters: object) -> int:
        """Keep the rows of a query as a table of DuckDB's own; return how many there are."""
        (count,) = self._connection.execute(f"CREATE TABLE {name} AS {sql}", parameters or None).fetchall()[0]
        self._kinds[name] = "TABLE"
        return int(count)

    def _free(self, name: str) -> None:
        """Give up what has this name, if anything."""
        kind = self._kinds.pop(name, None)
        if kind == _REGISTERED:
            self._connection.unregister(name)
        elif kind:
            self._connection.execute(f"DROP {kind} {name}")

    def define(self, macro: str) -> None:
        """Let queries call a function: ``name(arguments) AS expression``."""
        self._connection.execute(f"CREATE OR REPLACE MACRO {macro}")

    def rows(self, sql: str, **parameters: object) -> list[Row]:
        """What a query gives; ``$name`` in it stands for a parameter."""
        found = self._connection.execute(sql, parameters or None)
        kind = _row_type(tuple(column[0] for column in found.description))
        return [kind._make(row) for row in found.fetchall()]

    def any(self, sql: str, **parameters: object) -> bool:
        """Whether a query gives any row."""
        return bool(self._connection.execute(f"SELECT EXISTS ({sql})", parameters or None).fetchall()[0][0])

    def keep(self, name: str, sql: str, **parameters: object) -> bool:
        """Name the rows that a query gives as a table, for further queries; False if there are none."""
        self._free(name)
        return self._create(name, sql, **parameters) > 0

    def of_each(self, sql: str, questions: Iterable[Mapping[str, Any]]) -> list[list[Row]]:
        """What a query gives for each of many questions, in the order of its columns.

        All are asked at once: a query for each would read the tables each time.

        Args:
            sql: the query; ``$name`` in it stands for what a question states under that name.
            questions: values by name, all of them of the same names.
        """
        asked = [{**one, "number": number} for number, one in enumerate(questions)]
        found: list[list[Row]] = [[] for _ in asked]
        if not asked:
            return found
        self.add("question", pa.Table.from_pylist(asked))
        of_one = re.sub(r"\$(\w+)", r"question.\1", sql)
        cursor = self._connection.execute(
            f"SELECT question.number, found.* FROM question, LATERAL ({of_one}) AS found ORDER BY ALL"
        )
        kind = _row_type(tuple(column[0] for column in cursor.description[1:]))
        for number, *values in cursor.fetchall():
            found[number].append(kind._make(values))
        return found

    def each(self, sql: str, **parameters: object) -> Iterator[Row]:
        """The same one after the other, for results that need not be in memory. Ask nothing else before it ends."""
        found = self._connection.execute(sql, parameters or None)
        kind = _row_type(tuple(column[0] for column in found.description))
        while some := found.fetchmany(_ROWS_AT_ONCE):
            yield from map(kind._make, some)

    def table(self, sql: str, **parameters: object) -> pa.Table:
        """The same as an Arrow table."""
        return self._connection.sql(sql, params=parameters or None).to_arrow_table()

    def reader(self, sql: str, rows: int) -> pa.RecordBatchReader:
        """The same in batches of this many rows, for results larger than memory. Run no other query meanwhile."""
        return self._connection.sql(sql).to_arrow_reader(rows)

    def close(self) -> None:
        """Free what is held; the connection, which takes a while to make, waits for whoever needs one next."""
        if self._reads_files:
            self._connection.close()
            return
        for name in reversed(list(self._kinds)):
            self._free(name)
        _IDLE.append(self._connection)


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)
