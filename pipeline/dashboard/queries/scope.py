"""Which part of the lake is looked at: a span of time and a protocol; and how a query is asked about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.analysis.statements.mongodb import REMEMBERED_DAYS
from pipeline.dashboard.views import views
from pipeline.errors import UserError
from pipeline.tables import TABLES

BUCKETS = 300
"""Points of one line in a plot."""
LOOK_BACK = timedelta(days=1)
"""How far before a span is read to know how things were at its end."""
IN_SPAN = "date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end"
"""That a row is of the span: its day shows which files need not be opened."""
SEEN_ONCE = """NOT EXISTS (
      SELECT 1 FROM silver.duplicate_flows AS c
      WHERE c.connection_id = x.connection_id AND c.hour = date_trunc('hour', x.ts)
    )"""
"""That an exchange ``x`` is none that another agent saw, too, and that is counted there.

:func:`ask` leaves it out where the lake has no copies: to look for them takes most of the time of a query.
"""
APPLICATIONS = f"""
(SELECT connection_id, max(application) AS application FROM silver.mongo_handshakes
 WHERE date BETWEEN $first_day - INTERVAL {REMEMBERED_DAYS} DAY AND $last_day AND application <> ''
 GROUP BY connection_id)
"""  # noqa: S608 - our own text
"""As SQL: the name that an application stated of itself, by connection; none where the lake lacks the table."""
_NO_APPLICATIONS = "(SELECT NULL::VARCHAR AS connection_id, NULL::VARCHAR AS application WHERE false)"
_EARLIEST = datetime.min.replace(tzinfo=timezone.utc)
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_NAMED = re.compile(r"\$(\w+)")
_READ = re.compile(r"\b(FROM|JOIN) ([a-z]+\.[a-z_]+) AS\b")


class NotThereYetError(UserError):
    """Raised when a young lake lacks a table that the query reads."""


class UnreadableError(UserError):
    """Raised when what is in the lake cannot be read."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at.

    Attributes:
        start: first moment, UTC.
        end: last moment, inclusive.
        protocol: kafka or mongodb; None: both.
        cluster: to which the tables are limited (:mod:`pipeline.dashboard.clusters`); None: they are not.
    """

    start: datetime
    end: datetime
    protocol: str | None = None
    cluster: str | None = None

    @property
    def bucket(self) -> timedelta:
        """Width of a bucket of a plot, whole milliseconds."""
        return timedelta(milliseconds=max(1, -(-int((self.end - self.start).total_seconds() * 1000) // BUCKETS)))

    def has(self, protocol: str) -> bool:
        """Whether ``protocol`` is looked at."""
        return self.protocol in (None, protocol)

    def parameters(self) -> dict[str, Any]:
        """Values of ``$start``, ``$end``, ``$first_day``, ``$last_day``, ``$protocol`` and ``$bucket``.

        And of ``$since`` and ``$since_day``, which are ``LOOK_BACK`` before the start.
        """
        since = self.start - min(LOOK_BACK, self.start - _EARLIEST)
        return {
            "since": since,
            "since_day": since.date(),
            "start": self.start,
            "end": self.end,
            "first_day": self.start.date(),
            "last_day": self.end.date(),
            "protocol": self.protocol,
            "bucket": self.bucket,
        }


def narrowed(scope: Scope, times_ms: Sequence[float]) -> Scope | None:
    """The part of the span from the least of these times to the greatest; None if that is no part of it.

    Args:
        scope: the span.
        times_ms: milliseconds since the epoch, e.g. what somebody has dragged over.
    """
    if not times_ms:
        return None
    low, high = min(times_ms), max(times_ms)
    start = _EPOCH + timedelta(milliseconds=low) if low > _milliseconds(scope.start) else scope.start
    end = _EPOCH + timedelta(milliseconds=high) if high < _milliseconds(scope.end) else scope.end
    return replace(scope, start=start, end=end) if end - start >= timedelta(milliseconds=1) else None


def _milliseconds(ts: datetime) -> float:
    return (ts - _EPOCH) / timedelta(milliseconds=1)


def widened(scope: Scope, factor: float = 3.0) -> Scope:
    """A span ``factor`` times as long about the same middle, two seconds at least."""
    more = max((scope.end - scope.start) * (factor - 1) / 2, timedelta(seconds=1))
    latest = datetime.max.replace(tzinfo=timezone.utc)
    return replace(
        scope, start=scope.start - min(more, scope.start - _EARLIEST), end=scope.end + min(more, latest - scope.end)
    )


def ask(connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope | None = None, **values: Any) -> pa.Table:
    """The answer to ``sql``, whose ``$names`` are those of :meth:`Scope.parameters` and ``values``.

    Raises:
        NotThereYetError: the lake has not got a table or view of these.
        UserError: it cannot be read, or takes too much.
    """
    known = {**(scope.parameters() if scope else {}), **values}
    used = {name: known[name] for name in _NAMED.findall(sql)}
    try:
        if SEEN_ONCE in sql and not connection.sql("SELECT 1 FROM silver.duplicate_flows LIMIT 1").fetchall():
            sql = sql.replace(SEEN_ONCE, "true")
        if APPLICATIONS in sql and not _has(connection, "silver.mongo_handshakes"):
            sql = sql.replace(APPLICATIONS, _NO_APPLICATIONS)
        return connection.sql(sql, params=used).to_arrow_table()
    except duckdb.CatalogException as error:
        raise NotThereYetError(f"This lake lacks a table that is read here. ({_line(error)})") from error
    except duckdb.OutOfMemoryException as error:
        raise UserError("This takes more memory than a query may: choose a shorter time range.") from error
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise UnreadableError(
            "A table that is read here is damaged, of another layout, or was rewritten meanwhile: Refresh now looks "
            f"at it again. ({_line(error)})"
        ) from error


def _has(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    try:
        connection.sql(f"SELECT 1 FROM {table} LIMIT 0")  # noqa: S608 - a name of ours
    except duckdb.Error:
        return False
    return True


def _line(error: Exception) -> str:
    if isinstance(error, duckdb.PermissionException):  # a path that leads nowhere is none of those that may be read
        return "a file of it is gone"
    return next(iter(str(error).splitlines()), type(error).__name__)


def ask_rows(
    connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope | None = None, **values: Any
) -> list[dict[str, Any]]:
    """The same as rows, a dictionary each; times have their zone, UTC."""
    found: list[dict[str, Any]] = ask(connection, sql, scope, **values).to_pylist()
    return found


def rows_if_there(
    connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope | None = None, **values: Any
) -> list[dict[str, Any]]:
    """The same; none where the lake has not got a table or view yet."""
    try:
        return ask_rows(connection, sql, scope, **values)
    except NotThereYetError:
        return []


def as_of(view: str) -> str:
    """The query of a view, in which each table with ``date`` and ``ts`` ends with ``$end``: how things were then.

    It begins ``LOOK_BACK`` before ``$start``: what hangs has often begun to hang earlier.

    Args:
        view: its name; it reads tables as ``FROM schema.table AS alias``.
    """

    def limited(match: re.Match[str]) -> str:
        table = TABLES[match[2]]
        if not {"date", "ts"} <= set(table.column_names):
            return match[0]
        kept = f"SELECT * FROM {match[2]} WHERE date BETWEEN $since_day AND $last_day AND ts BETWEEN $since AND $end"  # noqa: S608 - names of the registry
        return f"{match[1]} ({kept}) AS"

    sql = next(found.sql for found in views() if found.name == view)
    return _READ.sub(limited, sql)


@dataclass(frozen=True, slots=True)
class Extent:
    """From when to when the lake has data: first and last moment of all, and of the last day (UTC) with data."""

    first: datetime
    last: datetime
    last_day_first: datetime


_DAYS = """
SELECT min(d) AS first_day, max(d) AS last_day
FROM (SELECT date AS d FROM gold.api_latency UNION ALL SELECT date FROM gold.mongo_commands)
"""
_ALL_DAYS = "SELECT min(date) AS first_day, max(date) AS last_day FROM silver.exchanges"
# What an answer states is known when it comes, not when it was asked for.
_NEWEST = "max(greatest(ts, coalesce(response_ts, ts)))"
_DAY = f"SELECT min(ts) AS first_ts, {_NEWEST} AS last_ts FROM silver.exchanges WHERE date = $day"  # noqa: S608
# Gold knows to a minute where to look, and may not know yet what came last.
_MINUTES = """
SELECT min(minute) + INTERVAL 1 MINUTE AS before, max(minute) AS since FROM (
  SELECT minute FROM gold.api_latency WHERE date = $day UNION ALL
  SELECT minute FROM gold.mongo_commands WHERE date = $day
)
"""
_FIRST = "SELECT min(ts) AS ts FROM silver.exchanges WHERE date = $day AND ts < $before"
# The last answer may be to a request of some minutes before: it waited (JoinGroup, a long poll).
_LAST = f"""
SELECT {_NEWEST} AS ts FROM silver.exchanges WHERE date = $day AND ts >= $since::TIMESTAMPTZ - INTERVAL 10 MINUTE
"""  # noqa: S608 - our own text
_OTHERS = (
    "SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM bronze.frames",
    "SELECT min(ts) AS first_ts, max(ts) AS last_ts FROM gold.offset_timeline",
    "SELECT min(first_ts) AS first_ts, max(last_ts) AS last_ts FROM gold.findings",
)
"""What else shows when there is data, where the exchanges cannot be read."""
_CONNECTIONS = (
    "SELECT min(first_ts) AS ts FROM silver.connections WHERE date <= $first_day",
    "SELECT max(last_ts) AS ts FROM silver.connections WHERE date >= $last_day",
)


def extent(connection: duckdb.DuckDBPyConnection) -> Extent | None:
    """From when to when there is data; None if there is none. Reads one day of exchanges, not all.

    Connections that never came to speak are data, too, and continue behind the last message of those that did.

    Raises:
        UserError: there is no table that shows it.
    """
    found = _extent_of_messages(connection)
    first_day, last_day = (found.first.date(), found.last.date()) if found else (date.max, date.min)
    of_connections = (
        row["ts"]
        for sql in _CONNECTIONS
        for row in rows_if_there(connection, sql, first_day=first_day, last_day=last_day)
    )
    times = [ts for ts in of_connections if ts is not None]
    times += [found.first, found.last] if found else []
    if not times:
        return None
    first, last = min(times), max(times)
    if found is None or last.date() > last_day:
        return _from_to(first, last)
    return Extent(first, last, found.last_day_first)


def _from_to(first: datetime, last: datetime) -> Extent:
    midnight = datetime.combine(last.date(), datetime.min.time(), timezone.utc)
    return Extent(first, last, max(first, midnight))


def _extent_of_messages(connection: duckdb.DuckDBPyConnection) -> Extent | None:
    try:
        return _extent_of_exchanges(connection)
    except UserError:
        for sql in _OTHERS:
            with suppress(UserError):
                found = ask_rows(connection, sql)[0]
                if found["last_ts"] is not None:
                    return _from_to(found["first_ts"], found["last_ts"])
        raise


def _extent_of_exchanges(connection: duckdb.DuckDBPyConnection) -> Extent | None:
    days: Sequence[dict[str, Any]] = []
    try:
        days = ask_rows(connection, _DAYS)
    except UserError:
        days = []
    if not days or days[0]["last_day"] is None:
        days = ask_rows(connection, _ALL_DAYS)
    first_day, last_day = days[0]["first_day"], days[0]["last_day"]
    if last_day is None:
        return None
    bounds = _bounds(connection, last_day)
    if bounds["last_ts"] is None:
        return None
    first = (
        bounds["first_ts"] if first_day == last_day else datetime.combine(first_day, datetime.min.time(), timezone.utc)
    )
    return Extent(first, bounds["last_ts"], bounds["first_ts"])


def _bounds(connection: duckdb.DuckDBPyConnection, day: date) -> dict[str, Any]:
    """First and last moment of a day's exchanges; of a day with many only some minutes are read."""
    with suppress(UserError):
        minutes = ask_rows(connection, _MINUTES, day=day)[0]
        if minutes["since"] is not None:
            first = ask_rows(connection, _FIRST, day=day, before=minutes["before"])[0]["ts"]
            last = ask_rows(connection, _LAST, day=day, since=minutes["since"])[0]["ts"]
            if first is not None and last is not None:
                return {"first_ts": first, "last_ts": last}
    return ask_rows(connection, _DAY, day=day)[0]
