"""Exchanges that match, the newest first, and what else could narrow the search, without reading all that there are.

The span is walked backward in windows that grow, until so many are found that a page is full and counts mean
something, or until it took so long that a person should be asked. Of the windows only what is counted is read; all of
an exchange, with its bodies, only of those on the page. Names inside messages (topics, groups, transactions,
namespaces) are looked up in the tables of what exchanges state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.dashboard.queries.scope import APPLICATIONS, IN_SPAN, Scope, ask, ask_rows
from pipeline.dashboard.queries.terms import Term, conditions_of, parameters_of
from pipeline.dashboard.queries.traffic.exchanges import spoken

PAGE = 100
"""Exchanges that are shown at once."""
ENOUGH = 5_000
"""Matches with which the walk ends: their counts show what to narrow by."""
MOST = 50_000
"""Matches of one window that are counted; of more the newest."""
SECONDS = 0.7
"""No window is begun that would not be read by then if it took as long as the one before …"""
PATIENCE = 4
"""… or in so many times as long as that, where nothing was found yet."""
_STATED_LATER = timedelta(minutes=10)
"""What an exchange states is dated by its response: one that came later than this is not found by what it states."""
MOST_VALUES = 8
"""Values of a facet, the most frequent ones."""
ANY_ERROR = "any error"

_FIRST_PART = 4096
"""The first window is such a part of the span."""
_GROWTH = 4
_LEAST = timedelta(seconds=1)
_LATEST = datetime.max.replace(tzinfo=timezone.utc)
_LONGEST_NAME = 100
"""Characters of a name that is offered: MongoDB's are what clients send, of any length."""
_WILD = frozenset("*?")
_ID_LENGTH = 22
"""Characters of a topic id (KIP-516) as Kafka writes it."""

FACETS = {
    "api_name": "api_name", "client_id": "client_id", "error": "error_names", "status": "status",
    "host": "server",
}  # fmt: skip
"""What counts narrow by: attributes of :class:`Search`, and the columns that hold their values."""

COLUMNS = {
    **{name: name for name in ("api_name", "client_id", "status", "connection_id", "exchange_id")},
    "error_names": "array_to_string(error_names, ', ')",
    **{side: f"({side}_ip || ':' || {side}_port)" for side in ("client", "server")},
}
"""What terms are about: columns of the rows, as SQL."""

_STATED = "date BETWEEN $first_day AND $stated_day AND ts BETWEEN $start AND $stated_by"
_COUNTED = """
SELECT ts, api_name, client_id, error_names, status, server_ip || ':' || server_port AS server FROM silver.exchanges
WHERE {} ORDER BY ts DESC LIMIT $most
"""


@dataclass(frozen=True, slots=True)
class Search:
    """What an exchange has to have; None: anything. Names may have ``*`` and ``?``.

    Attributes:
        client_id: a part of the client id, of MongoDB of the application's name, in any case; all of it if it has ``*``
            or ``?``.
        connection_id: or its beginning.
        error: name of an error, or ``ANY_ERROR``.
        topic: name or id of a Kafka topic that the exchange is about.
        partition: index, of that topic or any.
        group_id: consumer or share group that it names.
        transactional_id: that it names.
        namespace: of MongoDB: a database, or ``database.collection``.
        host: address, or address with port, of either side.
        slower_than_us: microseconds that it took at least, not inclusive.
        terms: of ``COLUMNS``, which all have to hold.
    """

    api_name: str | None = None
    client_id: str | None = None
    connection_id: str | None = None
    error: str | None = None
    status: str | None = None
    topic: str | None = None
    partition: int | None = None
    group_id: str | None = None
    transactional_id: str | None = None
    namespace: str | None = None
    host: str | None = None
    slower_than_us: int | None = None
    terms: tuple[Term, ...] = ()

    @property
    def asked(self) -> list[str]:
        """The attributes that leave out exchanges, without the terms."""
        return [each.name for each in fields(self) if each.name != "terms" and getattr(self, each.name) is not None]

    @property
    def asks_what_is_stated(self) -> bool:
        """Whether it asks for names inside messages."""
        return any(True for _ in self._stated())

    def parameters(self) -> dict[str, Any]:
        """Values of the ``$names`` of :meth:`conditions`."""
        ip, port = _host(self.host or "")
        database, _, collection = (self.namespace or "").partition(".")
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "terms"}
        given |= parameters_of(self.terms)
        return {**given, "ip": ip, "port": port, "database": database, "collection": collection}

    def within(self, window: Scope) -> dict[str, Any]:
        """The same with those that depend on a window."""
        by = window.end + min(_STATED_LATER, _LATEST - window.end)
        return {**self.parameters(), "stated_by": by, "stated_day": by.date()}

    def conditions(self, *, of_applications: bool = True) -> list[str]:
        """What ``silver.exchanges`` is asked for.

        Args:
            of_applications: whether the client may be an application of MongoDB, which is looked for by connection.
        """
        found = [
            condition
            for condition, is_asked in (
                (_named("api_name", "api_name", self.api_name), self.api_name),
                (self._client(of_applications=of_applications), self.client_id),
                ("starts_with(connection_id, $connection_id)", self.connection_id),
                ("status = $status", self.status),
                ("coalesce(service_us, latency_us) > $slower_than_us", self.slower_than_us is not None),
                (self._error(), self.error),
                (self._at(), self.host),
            )
            if is_asked
        ]
        return [*found, *conditions_of(self.terms, COLUMNS), *self._stated()]

    def _client(self, *, of_applications: bool) -> str:
        found = self._is_client("client_id")
        return f"({found} OR connection_id IN ({self.connections()}))" if of_applications else found

    def connections(self) -> str:
        """As SQL, those of applications of MongoDB of this name, which each states once a connection."""
        return f"SELECT connection_id FROM {APPLICATIONS} WHERE {self._is_client('application')}"  # noqa: S608 - our own text

    def _is_client(self, column: str) -> str:
        if _WILD & set(self.client_id or ""):
            return f"{column} GLOB $client_id"
        return f"contains(lower({column}), lower($client_id))"

    def _error(self) -> str:
        return "len(error_codes) > 0" if self.error == ANY_ERROR else "list_contains(error_names, $error)"

    def _at(self) -> str:
        of_port = _host(self.host or "")[1] is not None
        sides = (f"({side}_ip = $ip{f' AND {side}_port = $port' if of_port else ''})" for side in ("client", "server"))
        return f"({' OR '.join(sides)})"

    def _stated(self) -> Iterator[str]:
        """Conditions on what exchanges state; all of one table have to hold for one statement."""
        kafka = []
        if self.topic is not None:
            by_id = " OR topic_id = $topic" if len(self.topic) == _ID_LENGTH else ""
            kafka.append(f"({_named('topic', 'topic', self.topic)}{by_id})")
        if self.partition is not None:
            kafka.append("partition = $partition")
        kafka += [
            _named(name, name, value)
            for name in ("group_id", "transactional_id")
            if (value := getattr(self, name)) is not None
        ]
        if kafka:
            of_both = " UNION ALL ".join(
                _ids(table, [*kafka]) for table in ("silver.offset_events", "silver.state_events")
            )
            yield f"exchange_id IN ({of_both})"
        if self.namespace is not None:
            database, _, collection = self.namespace.partition(".")
            mongo = [_named("database", "database", database)]
            if collection:
                mongo.append(_named("collection", "collection", collection))
            yield f"exchange_id IN ({_ids('silver.mongo_commands', mongo)})"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        rows: the newest that match, with the columns of ``LIST_COLUMNS`` and ``words``; those of one moment are not
            torn apart.
        facets: of each of ``FACETS`` the most frequent values among those that were counted, with how many have them.
        counted: how many matches were counted.
        counted_from: since when they are; all of them since then.
        is_all: whether that is all of the span.
        older: the moment before which the next page begins; None: this is the last.
    """

    rows: list[dict[str, Any]]
    facets: dict[str, list[tuple[str, int]]]
    counted: int
    counted_from: datetime
    is_all: bool
    older: datetime | None


def search(
    connection: duckdb.DuckDBPyConnection, scope: Scope, wanted: Search, before: datetime | None = None,
    seconds: float = SECONDS,
) -> Found:  # fmt: skip
    """The newest exchanges that match, in words.

    Args:
        connection: to the lake.
        scope: when they were.
        wanted: what they have to have.
        before: only those before this moment, for the next page.
        seconds: when to stop looking further back, see ``SECONDS``.

    Raises:
        NotThereYetError: there are no exchanges, or no statements that are asked for.
    """
    if before is not None and before <= scope.end:
        scope = replace(scope, end=before - timedelta(microseconds=1))
    conditions = wanted.conditions(of_applications=_has_application(connection, scope, wanted))
    if scope.protocol is not None:
        conditions.insert(0, "protocol = $protocol")
    where = " AND ".join([IN_SPAN, *conditions])
    parts, counted_from, is_all = _walk(connection, _COUNTED.format(where), scope, wanted, seconds)
    matches = pa.concat_tables(parts) if parts else None
    if matches is None or not matches.num_rows:
        return Found([], {}, 0, counted_from, is_all, None if is_all else counted_from)
    times = matches["ts"]
    last = times[min(PAGE, matches.num_rows) - 1].as_py()
    of_page = Scope(last, times[0].as_py(), scope.protocol)
    rows = spoken(connection, where, of_page, PAGE * 2, **wanted.within(of_page))
    facets = {name: _most_frequent(matches, column) for name, column in FACETS.items()}
    older = last if len(rows) < matches.num_rows else None if is_all else counted_from
    return Found(rows, facets, matches.num_rows, counted_from, is_all, older)


def _has_application(connection: duckdb.DuckDBPyConnection, scope: Scope, wanted: Search) -> bool:
    """Whether any application has the name; where none has, the connections of exchanges need not be read."""
    if wanted.client_id is None:
        return False
    return bool(ask_rows(connection, f"{wanted.connections()} LIMIT 1", scope, **wanted.parameters()))


def _walk(
    connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope, wanted: Search, seconds: float
) -> tuple[list[pa.Table], datetime, bool]:
    """The matches of the windows that were read, since when they are all there, and whether that is all."""
    parts: list[pa.Table] = []
    counted_from, begun, enough = scope.start, time.monotonic(), ENOUGH
    for window in windows(scope, _STATED_LATER if wanted.asks_what_is_stated else _LEAST):
        at = time.monotonic()
        part = ask(connection, sql, window, most=MOST, **wanted.within(window))
        parts.append(part)
        enough -= part.num_rows
        if part.num_rows == MOST:
            return parts, part["ts"][-1].as_py(), False
        counted_from = window.start
        now = time.monotonic()
        is_late = now + (now - at) - begun > seconds * (1 if enough < ENOUGH else PATIENCE)
        if enough <= 0 or is_late:
            break
    return parts, counted_from, counted_from <= scope.start


def windows(scope: Scope, least: timedelta = _LEAST) -> Iterator[Scope]:
    """Spans that together are ``scope``, the latest first, each longer than the one before; older days are whole."""
    length, end = max((scope.end - scope.start) / _FIRST_PART, least), scope.end
    while end >= scope.start:
        midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
        earliest = max(midnight, scope.start)
        start = earliest if end.date() < scope.end.date() or end - earliest <= length * 2 else end - length
        yield Scope(start, end, scope.protocol)
        end, length = start - timedelta(microseconds=1), length * _GROWTH


def _most_frequent(matches: pa.Table, column: str) -> list[tuple[str, int]]:
    values = matches[column].combine_chunks()
    if pa.types.is_list(values.type):
        values = values.flatten()  # an exchange names an error once
    counts = Counter({one["values"]: one["counts"] for one in values.value_counts().to_pylist()})
    named: Sequence[tuple[Any, int]] = [
        (value, count) for value, count in counts.items() if value and len(value) <= _LONGEST_NAME
    ]
    return sorted(named, key=lambda one: (-one[1], one[0]))[:MOST_VALUES]


def without_one(
    connection: duckdb.DuckDBPyConnection, scope: Scope, wanted: Search, seconds: float = SECONDS
) -> list[tuple[str | Term, int, bool]]:
    """What could be left out of a search that finds nothing.

    Each attribute or term with how many match then, and whether these are all.

    Args:
        connection: to the lake.
        scope: the span.
        wanted: finds nothing in it.
        seconds: for each attribute.
    """
    parts: list[str | Term] = [*wanted.asked, *wanted.terms]
    found = []
    for one in parts if len(parts) > 1 or wanted.terms else ():
        rest = search(connection, scope, _without(wanted, one), seconds=seconds)
        if rest.counted:
            found.append((one, rest.counted, rest.is_all))
    return found


def _without(wanted: Search, one: str | Term) -> Search:
    if isinstance(one, Term):
        return replace(wanted, terms=tuple(term for term in wanted.terms if term != one))
    given: dict[str, Any] = {one: None}
    return replace(wanted, **given)


def _ids(table: str, conditions: Sequence[str]) -> str:
    return f"SELECT exchange_id FROM {table} WHERE {' AND '.join([_STATED, *conditions])}"  # noqa: S608 - our own text


def _named(column: str, parameter: str, text: str | None) -> str:
    """That a column has a name, or one like it; plain equality lets files be left out by their least and greatest."""
    return f"{column} {'GLOB' if _WILD & set(text or '') else '='} ${parameter}"


def _host(text: str) -> tuple[str, int | None]:
    """Address and port; an address of IPv6 with its port has brackets or is known from one without by its last part."""
    ip, _, port = text.rpartition(":")
    if ip and port.isdecimal() and (":" not in ip or ip.startswith("[")):
        return ip.strip("[]"), int(port)
    return text.strip("[]"), None
