"""Reads what moments rest on: few queries for all findings together, each bounded for every subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from pipeline.analysis.moments.format import COMMITS
from pipeline.analysis.moments.wanted import Place, Span, Wanted
from pipeline.analysis.tables import ADDRESS, Row, Tables

K = TypeVar("K")

MOST_OF_A_SUBJECT = 400
"""Rows of a partition, a group or a transaction that are looked at, those that came first."""
_OF_AN_EXCHANGE = 3
_US = "epoch_us(ts) AS us"
_OF_BOTH = ("exchange_id", "kind", "group_id", "member_id", "generation", "topic", "partition", "client_id", "client",
            "server", "error_name")  # fmt: skip


def _of(table: str, *columns: str) -> str:
    """Columns of a table, those that events and states have in common first."""
    return ", ".join((f"epoch_us({table}.ts) AS us", *(f'{table}."{name}"' for name in (*_OF_BOTH, *columns))))


_EVENT = _of("e", "offset", "high_watermark", "last_stable_offset")
_STATE = _of("s", "transactional_id", "committed")
_EXCHANGES = f"""
    SELECT exchange_id, {_US}, client_id, {ADDRESS["client"]} AS client, {ADDRESS["server"]} AS server,
        api_name, api_version, status, error_names, latency_us
    FROM exchanges SEMI JOIN moment_exchanges USING (exchange_id)
"""
_WAITING = f"""
    SELECT exchange_id, epoch_us(request_ts) AS us, client_id, {ADDRESS["client"]} AS client,
        {ADDRESS["server"]} AS server, api_name, api_version, 'unanswered' AS status, NULL AS error_names,
        NULL AS latency_us
    FROM waiting SEMI JOIN moment_exchanges USING (exchange_id)
"""
_COMMANDS = f"""
    SELECT exchange_id, {_US}, application, client, server, command, database, collection, error_code, error_name,
        latency_us, is_awaiting
    FROM commands SEMI JOIN moment_exchanges USING (exchange_id)
"""
_EVENTS_OF_EXCHANGES = f"""
    SELECT w.number, {_EVENT}
    FROM events AS e JOIN moment_exchanges AS w ON e.exchange_id = w.exchange_id
        AND (w.topic IS NULL OR e.topic = w.topic) AND (w.partition IS NULL OR e.partition = w.partition)
    QUALIFY row_number() OVER (
        PARTITION BY w.number ORDER BY coalesce(e.error_code, 0) = 0, e.topic, e.partition, e.kind, e.ordinal
    ) <= {_OF_AN_EXCHANGE}
"""
_STATES_OF_EXCHANGES = f"""
    SELECT {_STATE} FROM states AS s SEMI JOIN moment_exchanges USING (exchange_id)
    WHERE kind NOT IN ('software', 'fetch_session', 'topology', 'assignment')
    QUALIFY row_number() OVER (PARTITION BY exchange_id ORDER BY ordinal) = 1
"""
_COMMITS_OF_PLACES = f"""
    SELECT w.number, {_EVENT}
    FROM events AS e JOIN moment_places AS w ON e.cluster = w.cluster AND e.group_id = w.group_id
        AND e.topic = w.topic AND e.partition = w.partition
        AND epoch_us(e.ts) BETWEEN w.since_us AND w.until_us
    WHERE kind IN ({", ".join(f"'{kind}'" for kind in COMMITS)})
        AND ts BETWEEN make_timestamptz($since_us) AND make_timestamptz($until_us)
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY ts, exchange_id, ordinal) <= {MOST_OF_A_SUBJECT}
"""
_STARVED = f"""
    SELECT w.number, {_EVENT}
    FROM events AS e JOIN moment_places AS w ON e.cluster = w.cluster AND e.topic = w.topic
        AND e.partition = w.partition AND epoch_us(e.ts) BETWEEN w.since_us AND w.until_us
    WHERE kind = 'fetched' AND isolation_level = 'read_committed' AND last_stable_offset < high_watermark
        AND last_stable_offset >= 0 AND "offset" >= last_stable_offset
        AND ts BETWEEN make_timestamptz($since_us) AND make_timestamptz($until_us)
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY ts, exchange_id, ordinal) <= {MOST_OF_A_SUBJECT}
"""
_GROUPS = f"""
    SELECT w.number, {_STATE}
    FROM states AS s JOIN moment_groups AS w ON s.cluster = w.cluster AND s.group_id = w.group_id
        AND epoch_us(s.ts) BETWEEN w.since_us AND w.until_us
    WHERE (kind = 'leave' OR (kind = 'join' AND coalesce(error_name, 'NONE') NOT IN ('NONE', 'MEMBER_ID_REQUIRED')))
        AND ts BETWEEN make_timestamptz($since_us) AND make_timestamptz($until_us)
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY ts, exchange_id, ordinal) <= {MOST_OF_A_SUBJECT}
"""
_GENERATIONS = """
    SELECT w.number, s.group_id, generation, min(epoch_us(ts)) AS us, arg_min(exchange_id, (ts, exchange_id))
        AS exchange_id, count(DISTINCT member_id) AS members
    FROM states AS s JOIN moment_groups AS w ON s.cluster = w.cluster AND s.group_id = w.group_id
        AND epoch_us(s.ts) BETWEEN w.since_us AND w.until_us
    WHERE kind = 'assignment' AND coalesce(error_code, 0) = 0 AND generation IS NOT NULL
        AND group_protocol = 'classic'
        AND ts BETWEEN make_timestamptz($since_us) AND make_timestamptz($until_us)
    GROUP BY w.number, s.group_id, generation
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY us, generation) <= 100
"""
_OWNERS = """
    SELECT w.number, s.generation, s.group_protocol, arg_min(member_id, (ts, exchange_id, ordinal)) AS member_id,
        min(epoch_us(ts)) AS us, arg_min(exchange_id, (ts, exchange_id, ordinal)) AS exchange_id
    FROM states AS s JOIN moment_places AS w ON s.cluster = w.cluster AND s.group_id = w.group_id
        AND s.topic = w.topic AND list_contains(s.partitions, w.partition) AND epoch_us(s.ts) <= w.until_us
    WHERE kind = 'assignment' AND coalesce(s.error_code, 0) = 0 AND s.generation IS NOT NULL
    GROUP BY w.number, s.generation, s.group_protocol
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY us DESC, s.generation) <= 100
"""
_MEMBERS = """
    SELECT member_id, arg_min(client_id, ts) AS client_id, arg_min(client, ts) AS client
    FROM states SEMI JOIN moment_owners USING (member_id) WHERE kind IN ('join', 'heartbeat')
    GROUP BY ALL
"""
_TRANSACTIONS = f"""
    SELECT w.number, {_STATE}
    FROM states AS s JOIN moment_transactions AS w ON s.cluster = w.cluster
        AND s.transactional_id = w.transactional_id AND epoch_us(s.ts) BETWEEN w.since_us AND w.until_us
    WHERE kind LIKE 'txn%' AND ts BETWEEN make_timestamptz($since_us) AND make_timestamptz($until_us)
    QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY ts, exchange_id, ordinal) <= {MOST_OF_A_SUBJECT}
"""
_CONNECTIONS = f"""
    SELECT connection_id, epoch_us(first_ts) AS us, epoch_us(last_ts) AS last_us, client_ip,
        {ADDRESS["server"]} AS server, how, connections
    FROM connections SEMI JOIN moment_connections USING (connection_id)
"""


@dataclass(slots=True)
class Read:
    """Rows by what they are about."""

    exchanges: dict[str, Row] = field(default_factory=dict)
    commands: dict[str, Row] = field(default_factory=dict)
    states: dict[str, Row] = field(default_factory=dict)
    events: dict[tuple[str, str | None, int | None], list[Row]] = field(default_factory=dict)
    commits: dict[Place, list[Row]] = field(default_factory=dict)
    starved: dict[Place, list[Row]] = field(default_factory=dict)
    owners: dict[Place, list[Row]] = field(default_factory=dict)
    groups: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    generations: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    members: dict[str, Row] = field(default_factory=dict)
    transactions: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    connections: dict[str, Row] = field(default_factory=dict)

    def of_evidence(self) -> Read:
        """Only what the exchanges and connections of findings are: to look at the rest of thousands takes seconds."""
        return Read(self.exchanges, self.commands, self.states, self.events, connections=self.connections)


def read(tables: Tables, wanted: Wanted) -> Read:
    """All that is wanted."""
    found = Read()
    if wanted.exchanges:
        keys = list(wanted.exchanges)
        tables.add("moment_exchanges", _named(keys, ("exchange_id", pa.string()), *_PLACE[2:]))
        for row in (*tables.rows(_WAITING), *tables.rows(_EXCHANGES)):
            found.exchanges[row.exchange_id] = row
        found.commands = {row.exchange_id: row for row in tables.rows(_COMMANDS)}
        found.states = {row.exchange_id: row for row in tables.rows(_STATES_OF_EXCHANGES)}
        found.events = _by(keys, tables.rows(_EVENTS_OF_EXCHANGES))
    if wanted.connections:
        tables.add("moment_connections", pa.table({"connection_id": pa.array(list(wanted.connections), pa.string())}))
        found.connections = {row.connection_id: row for row in tables.rows(_CONNECTIONS)}
    if (span := wanted.span) is not None:
        _read_subjects(tables, wanted, span, found)
    return found


_PLACE = (("cluster", pa.string()), ("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32()))


def _read_subjects(tables: Tables, wanted: Wanted, span: Span, found: Read) -> None:
    times = {"since_us": span.since_us, "until_us": span.until_us}
    if wanted.places:
        keys = list(wanted.places)
        tables.add("moment_places", _named(keys, *_PLACE, spans=wanted.places.values()))
        found.commits = _by(keys, tables.rows(_COMMITS_OF_PLACES, **times))
        found.starved = _by(keys, tables.rows(_STARVED, **times))
        found.owners = _by(keys, tables.rows(_OWNERS))
        ids = {row.member_id for rows in found.owners.values() for row in rows if row.member_id}
        tables.add("moment_owners", pa.table({"member_id": pa.array(sorted(ids), pa.string())}))
        found.members = {row.member_id: row for row in tables.rows(_MEMBERS)} if ids else {}
    if wanted.groups:
        names = list(wanted.groups)
        tables.add("moment_groups", _named(names, *_PLACE[:2], spans=wanted.groups.values()))
        found.groups = _by(names, tables.rows(_GROUPS, **times))
        found.generations = _by(names, tables.rows(_GENERATIONS, **times))
    if wanted.transactions:
        names = list(wanted.transactions)
        columns = (_PLACE[0], ("transactional_id", pa.string()))
        tables.add("moment_transactions", _named(names, *columns, spans=wanted.transactions.values()))
        found.transactions = _by(names, tables.rows(_TRANSACTIONS, **times))


def _named(
    keys: Sequence[tuple[object, ...]], *columns: tuple[str, pa.DataType], spans: Iterable[Span] = ()
) -> pa.Table:
    """Keys as rows with their number, and with the times that are asked about."""
    made = {name: pa.array([key[n] for key in keys], kind) for n, (name, kind) in enumerate(columns)}
    asked = list(spans)
    times = {name: pa.array([getattr(one, name) for one in asked], pa.int64()) for name in ("since_us", "until_us")}
    numbers = pa.array(range(len(keys)), pa.int64())
    return pa.table({"number": numbers, **made, **(times if asked else {})})


def _by(keys: Sequence[K], rows: Iterable[Row]) -> dict[K, list[Row]]:
    found: defaultdict[K, list[Row]] = defaultdict(list)
    for row in rows:
        found[keys[row.number]].append(row)
    return dict(found)
