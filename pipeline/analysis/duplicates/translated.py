"""Connections that carry the packets of another connection, seen again behind address translation.

Masquerading, a service address or a TCP proxy give the same exchanges other addresses, ports and sequence numbers. Two
connections are one if, within an hour, they share exchanges whose content no two clients share at one time: an id that
a server has given (member, producer, fetch session, cursor), a session of MongoDB's, the offset of an append; beside
api, version, correlation id, client id and sizes. All of them must be equally far apart in time, and make up at least
half of what the smaller connection holds in the time that both cover. Servers of two clusters that both state their ids
are never one: a client that writes the same records to both gets the same offsets. Clients that merely behave alike
(the same library with the same client id, started by one deploy) have ids of their own and stay apart, as do those
whose traffic holds no such id.

Connections with the same initial sequence numbers are one, whatever they carry (``numbers``).

Connections without such an id (a bootstrap connection holds ApiVersions and Metadata) follow those of their host: where
one client address stands for another one, connections of the two addresses are one if at least half of their exchanges
are alike, at the distance in time that the hosts' other connections have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pipeline.analysis.duplicates.alike import (
    ALIKE_SQL,
    LEAST_ALIKE,
    OF_ALIKE,
    REACH_US,
    SKEW_US,
    US_SQL,
    schema_of_columns,
)
from pipeline.analysis.hours import HOUR_US, hour_sql
from pipeline.analysis.tables import Some, Tables
from pipeline.lake.arrow import arrow_array
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, OFFSET_EVENTS, STATE_EVENTS, Column

_NEAR_US = 50_000
"""Exchanges of two copies differ from the usual distance by at most so much."""
_LEAST_HOST_US, _MOST_HOST_US = 1_000, 20_000
"""The same of connections that follow their host: four times what its other connections show, within these bounds."""
_MOST_OTHERS = 8
"""Addresses that one stands for at most: or a capture of many addresses would be compared all with all."""
_LEAST_OWN = 2
"""Shared exchanges with an id of their own that show that two connections are one."""
OF_SAME = {
    EXCHANGES.full_name: (*OF_ALIKE, "exchange_id", "flow_id", "client_ip", "client_port"),
    OFFSET_EVENTS.full_name: (
        "exchange_id", "cluster", "kind", "partition", "ordinal", "offset", "next_offset", "member_id", "generation",
        "session_id", "session_epoch", "producer_id",
    ),
    STATE_EVENTS.full_name: (
        "exchange_id", "connection_id", "cluster", "kind", "ordinal", "member_id", "generation", "producer_id",
        "producer_epoch", "session_id", "session_epoch",
    ),
    MONGO_COMMANDS.full_name: (
        "exchange_id", "connection_id", "request_id", "session_id", "txn_number", "cursor_id", "cursor_left",
        "documents_out",
    ),
}  # fmt: skip
"""Columns that :func:`same_flows` reads, by table."""
SAME = (
    Column("hour", "bigint", "µs since the epoch"),
    Column("flow_id", "string", ""),
    Column("label", "string", "flows that are one have the same"),
    Column("lead_us", "bigint", "the one that is seen first has the least"),
)
"""What :func:`same_flows` gives."""


def connection_sql(exchange_id: str) -> str:
    """The connection of an exchange, by its id, as SQL."""
    return f"regexp_extract({exchange_id}, '^[^-/]*')"


@dataclass(frozen=True, slots=True)
class Statements:
    """What exchanges state: rows of ``silver.offset_events``, ``state_events`` and ``mongo_commands``."""

    events: pa.Table
    states: pa.Table
    commands: pa.Table


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two flows that are one: ``second`` is seen ``shift_us`` after ``first``."""

    first: str
    second: str
    shift_us: int


def same_flows(exchanges: pa.Table, statements: Statements, those: pa.Table, numbers: pa.Table) -> pa.Table:
    """Which flows are one: rows of :data:`SAME`, by hour. What an hour shows holds in the next one as well.

    Args:
        exchanges: rows of ``silver.exchanges``.
        statements: what they state.
        those: the connections to compare, as :func:`candidates` gives them.
        numbers: flows that are one by their initial sequence numbers, as
            :func:`pipeline.analysis.duplicates.numbers.same_numbers` gives them.
    """
    found: dict[int, list[_Pair]] = defaultdict(list)
    for row in numbers.to_pylist():
        found[row["hour"]].append(_Pair(row["first_flow"], row["second_flow"], row["shift_us"]))
    for hour, pair in _by_content(exchanges, statements, those) if those.num_rows > 1 else ():
        found[hour].append(pair)
    return _table(found)


def _by_content(exchanges: pa.Table, statements: Statements, those: pa.Table) -> Iterable[tuple[int, _Pair]]:
    """Pairs of flows whose exchanges are the same, with the hour."""
    tables = _tables(exchanges, statements, those)
    try:
        pairs = tables.table(_close(_LEAST_OWN))
        if not pairs.num_rows:
            return
        tables.add("pairs", pairs)
        proven = tables.table(_compared(f"owns >= {_LEAST_OWN} AND matched >= {LEAST_ALIKE} AND matched * 2 >= total"))
        if not proven.num_rows:
            return
        tables.add("proven", proven)
        tables.add("hosts", tables.table(_HOSTS))
        tables.add("pairs", tables.table(_FOLLOWING))
        following = tables.table(_compared("matched * 2 >= total"))
        tables.add("found", pa.concat_tables([proven, following]))
        flows = {row.connection_id: row.flow_id for row in tables.rows(_FLOWS)}
        for row in tables.rows("SELECT hour, a, b, shift FROM found ORDER BY ALL"):
            yield row.hour, _Pair(flows[row.a], flows[row.b], row.shift)
    finally:
        tables.close()


def of_connections(rows: Some, those: pa.Table, columns: Iterable[str]) -> pa.Table:
    """Of rows with ``exchange_id`` those of some connections (``connection_id``)."""
    tables = Tables({"rows": rows, "those": those})
    try:
        return tables.table(f"""
            SELECT {", ".join(f'"{name}"' for name in columns)} FROM rows
            WHERE {connection_sql("exchange_id")} IN (SELECT connection_id FROM those)
        """)
    finally:
        tables.close()


def is_any_same(exchanges: pa.Table, statements: Statements, those: pa.Table) -> bool:
    """Whether two connections share so much as one exchange whose content is one client's own; as above."""
    if those.num_rows < 2:
        return False
    tables = _tables(exchanges, statements, those)
    try:
        return bool(tables.rows(f"SELECT 1 AS one FROM ({_close(1)}) LIMIT 1"))
    finally:
        tables.close()


def _tables(exchanges: pa.Table, statements: Statements, those: pa.Table) -> Tables:
    tables = Tables(
        {
            "exchanges": exchanges,
            "events": statements.events,
            "states": statements.states,
            "commands": statements.commands,
            "those": those,
        }
    )
    tables.add("keyed", tables.table(_KEYED))
    return tables


_RANDOM_CURSOR = 1 << 16
"""Ids of MongoDB's cursors above this are drawn at random; servers that only count them are young."""
_LONE_NUMBER = 1 << 20
"""Drivers of MongoDB draw the ids of requests at random, or count all of a process: two never count so far in step."""
_OWN_EVENT = """
    member_id <> '' OR session_id > 0 OR (kind = 'produced' AND "offset" >= 0)
    OR (kind NOT IN ('fetched', 'fetch_rejected') AND producer_id >= 0)
"""
_CLUSTER = "CASE WHEN NOT contains(cluster, ':') THEN cluster END"
"""Null while a server's address stands for it."""
_KEYED = f"""
    WITH stated AS (
        SELECT exchange_id, member_id <> '' OR producer_id >= 0 OR session_id > 0 AS is_own, hash(
            'state', kind, ordinal, member_id, generation, producer_id, producer_epoch, session_id, session_epoch
        ) AS content, {_CLUSTER} AS cluster FROM states SEMI JOIN those ON those.connection_id = states.connection_id
        UNION ALL
        SELECT exchange_id, {_OWN_EVENT}, hash(
            'event', kind, partition, ordinal, "offset", next_offset, member_id, generation, session_id, session_epoch
        ), {_CLUSTER} FROM events SEMI JOIN those ON those.connection_id = {connection_sql("events.exchange_id")}
        UNION ALL
        SELECT exchange_id,
            session_id <> '' OR abs(cursor_id) > {_RANDOM_CURSOR} OR abs(request_id) > {_LONE_NUMBER},
            hash('command', request_id, session_id, txn_number, cursor_id, cursor_left, documents_out), NULL
        FROM commands SEMI JOIN those ON those.connection_id = commands.connection_id
    ), personal AS (
        SELECT exchange_id, bit_xor(content) AS own, max(cluster) AS cluster
        FROM stated GROUP BY exchange_id HAVING bool_or(is_own)
    )
    SELECT connection_id || '@' || {hour_sql(US_SQL)} AS connection_id, agent_id, flow_id, client_ip, client_port,
        {hour_sql(US_SQL)} AS hour, {US_SQL} AS us,
        {ALIKE_SQL} AS alike, own, cluster
    FROM exchanges SEMI JOIN those USING (connection_id) LEFT JOIN personal USING (exchange_id)
"""
"""Exchanges of these connections: what they look like, and what of their content is one client's own, if anything.

A connection is cut by hours here (``id@hour``): what is one is so in an hour.
"""

_SIZES = """
    SELECT hour, connection_id, any_value(agent_id) AS agent_id, any_value(client_ip) AS client_ip,
        count(*) AS number, min(us) AS first_us, max(us) AS last_us
    FROM keyed GROUP BY hour, connection_id
"""


def _close(least: int) -> str:
    """Pairs of connections with content of one client: of each such exchange the first seen, with each other one.

    So pairs are no more than exchanges, however many connections are alike.

    Args:
        least: such exchanges.
    """
    return f"""
        WITH each AS (
            SELECT hour, connection_id, agent_id, us, cluster, hash(alike, own) AS key
            FROM keyed WHERE own IS NOT NULL
        ), cut AS (
            SELECT *, coalesce(us - lag(us) OVER w > {SKEW_US}, true)::INT AS begins
            FROM each WINDOW w AS (PARTITION BY hour, key ORDER BY us, connection_id)
        ), runs AS (
            SELECT *, sum(begins) OVER (PARTITION BY hour, key ORDER BY us, connection_id) AS run FROM cut
        ), seen AS (
            SELECT hour, key, run, connection_id, any_value(agent_id) AS agent_id, max(cluster) AS cluster,
                min(us) AS us
            FROM runs GROUP BY ALL
        ), centered AS (
            SELECT *, first_value(connection_id) OVER w AS center, first_value(us) OVER w AS center_us,
                first_value(agent_id) OVER w AS center_agent_id, first_value(cluster) OVER w AS center_cluster
            FROM seen WINDOW w AS (PARTITION BY hour, key, run ORDER BY us, connection_id)
        )
        SELECT hour, least(center, connection_id) AS a, greatest(center, connection_id) AS b,
            quantile_disc(CASE WHEN center < connection_id THEN us - center_us ELSE center_us - us END, 0.5) AS shift,
            {_NEAR_US}::BIGINT AS near
        FROM centered WHERE center <> connection_id AND coalesce(cluster = center_cluster, true) GROUP BY ALL
        HAVING count(*) >= {least} AND abs(shift)
            <= CASE WHEN any_value(agent_id) = any_value(center_agent_id) THEN {REACH_US} ELSE {SKEW_US} END
    """


def _compared(accepted: str) -> str:
    """The ``pairs`` that are one, by all exchanges of the smaller connection in the time that both cover.

    Args:
        accepted: which of them, by ``total`` exchanges, those that ``matched`` and those of them with content of one
            client (``owns``), as SQL.
    """
    return f"""
        WITH sizes AS ({_SIZES}), sided AS (
            SELECT p.*, a.number <= b.number AS is_a_small, CASE WHEN is_a_small THEN p.a ELSE p.b END AS small,
                CASE WHEN is_a_small THEN p.b ELSE p.a END AS large,
                CASE WHEN is_a_small THEN p.shift ELSE -p.shift END AS distance,
                CASE WHEN is_a_small THEN b.first_us ELSE a.first_us END AS first_us,
                CASE WHEN is_a_small THEN b.last_us ELSE a.last_us END AS last_us
            FROM pairs AS p JOIN sizes AS a ON a.connection_id = p.a JOIN sizes AS b ON b.connection_id = p.b
        ), wanted AS (
            SELECT s.hour, s.a, s.b, s.shift, s.near, s.large, k.alike, k.own,
                k.us + s.distance AS at_us, k.us + s.distance + s.near AS until_us
            FROM sided AS s JOIN keyed AS k ON k.connection_id = s.small
            WHERE at_us BETWEEN s.first_us - s.near AND s.last_us + s.near
        ), met AS (
            SELECT w.*, abs(k.us - w.at_us) AS off, coalesce(off <= w.near AND k.own IS NOT DISTINCT FROM w.own, false)
                AS is_same
            FROM wanted AS w ASOF LEFT JOIN keyed AS k ON k.connection_id = w.large AND k.alike = w.alike
                AND k.us <= w.until_us
        ), summed AS (
            SELECT hour, a, b, any_value(shift) AS shift, count(*) AS total, count(*) FILTER (is_same) AS matched,
                count(*) FILTER (is_same AND own IS NOT NULL) AS owns,
                quantile_disc(off, 0.95) FILTER (is_same) AS spread
            FROM met GROUP BY hour, a, b
        )
        SELECT hour, a, b, shift, spread FROM summed WHERE {accepted}
    """


_HOSTS = f"""
    WITH sizes AS ({_SIZES}), mapped AS (
        SELECT p.hour, p.shift, p.spread, a.agent_id AS agent_a, b.agent_id AS agent_b, a.client_ip AS ip_a,
            b.client_ip AS ip_b
        FROM proven AS p JOIN sizes AS a ON a.connection_id = p.a JOIN sizes AS b ON b.connection_id = p.b
    ), forth AS (
        SELECT hour, agent_a AS agent_id, ip_a AS ip, agent_b AS other_agent_id, ip_b AS other_ip, shift, spread
        FROM mapped
    ), ways AS (
        SELECT * FROM forth UNION ALL
        SELECT hour, other_agent_id, other_ip, agent_id, ip, -shift, spread FROM forth
    ), hosts AS (
        SELECT hour, agent_id, ip, other_agent_id, other_ip, count(*) AS connections,
            quantile_disc(shift, 0.5) AS shift, max(spread) AS spread,
            count(*) OVER (PARTITION BY hour, agent_id, ip) AS others
        FROM ways WHERE (agent_id, ip) <> (other_agent_id, other_ip) OR shift >= 0
        GROUP BY hour, agent_id, ip, other_agent_id, other_ip
    )
    SELECT h.hour, h.agent_id, h.ip, h.other_agent_id, h.other_ip, h.shift,
        least(greatest(4 * h.spread, {_LEAST_HOST_US}), {_MOST_HOST_US}) AS near
    FROM hosts AS h JOIN hosts AS back ON back.hour = h.hour AND back.agent_id = h.other_agent_id
        AND back.ip = h.other_ip AND back.other_agent_id = h.agent_id AND back.other_ip = h.ip
    WHERE (h.others, h.agent_id, h.ip) <= (back.others, back.agent_id, back.ip)
    QUALIFY row_number() OVER (
        PARTITION BY h.hour, h.agent_id, h.ip ORDER BY h.connections DESC, h.other_agent_id, h.other_ip
    ) <= {_MOST_OTHERS}
"""
"""Which client address stands for which other one, how much later it is seen, and how exactly.

It goes from the address that stands for fewer: from many pods to their gateway. Where addresses of servers alone are
translated an address stands for itself: seen later, at the same port.
"""


def _met(sign: str) -> str:
    return f"""
        SELECT f.*, s.connection_id AS other, abs(s.us - f.at_us) AS off
        FROM firsts AS f ASOF JOIN seconds AS s ON s.hour = f.hour AND s.alike = f.alike AND s.port = f.port
            AND s.agent_id = f.other_agent_id AND s.client_ip = f.other_ip AND s.us {sign} f.at_us
    """


_FOLLOWING = f"""
    WITH free AS (
        SELECT * FROM keyed ANTI JOIN
            (SELECT hour, a AS connection_id FROM proven UNION SELECT hour, b FROM proven) USING (hour, connection_id)
    ), firsts AS (
        SELECT f.hour, f.connection_id, f.alike, f.us + h.shift AS at_us, h.near, h.shift, f.agent_id, f.client_ip,
            h.other_agent_id, h.other_ip, CASE WHEN h.ip = h.other_ip THEN f.client_port ELSE -1 END AS port
        FROM free AS f JOIN hosts AS h ON h.hour = f.hour AND h.agent_id = f.agent_id AND h.ip = f.client_ip
    ), seconds AS (
        SELECT *, -1 AS port FROM free UNION ALL SELECT *, client_port AS port FROM free
    ), met AS ({_met("<=")} UNION ALL {_met(">=")}
    ), votes AS (
        SELECT hour, connection_id AS a, other AS b, any_value(shift) AS shift, any_value(near) AS near,
            count(*) AS number, min(off) AS off, agent_id, client_ip, other_agent_id, other_ip
        FROM met WHERE off <= near AND other <> connection_id
        GROUP BY hour, connection_id, other, agent_id, client_ip, other_agent_id, other_ip
    ), best AS (
        SELECT *,
            row_number() OVER (PARTITION BY hour, a, other_agent_id, other_ip ORDER BY number DESC, off, b) AS of_a,
            row_number() OVER (PARTITION BY hour, b, agent_id, client_ip ORDER BY number DESC, off, a) AS of_b
        FROM votes
    )
    SELECT hour, least(a, b) AS a, greatest(a, b) AS b, CASE WHEN a < b THEN shift ELSE -shift END AS shift, near
    FROM best WHERE of_a = 1 AND of_b = 1
"""
"""Pairs of connections that hold nothing of their own, of hosts that stand for each other: each other's nearest."""

_FLOWS = "SELECT connection_id, any_value(flow_id) AS flow_id FROM keyed GROUP BY connection_id"


def _table(pairs: Mapping[int, Iterable[_Pair]]) -> pa.Table:
    rows: list[tuple[int, str, str, int]] = []
    for hour in sorted({one for found in pairs for one in (found, found + HOUR_US)}):
        near: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for pair in (*pairs.get(hour, ()), *pairs.get(hour - HOUR_US, ())):
            near[pair.first].append((pair.second, pair.shift_us))
            near[pair.second].append((pair.first, -pair.shift_us))
        rows += [(hour, *one) for one in _labelled(near)]
    schema = schema_of_columns(SAME)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [arrow_array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _labelled(near: Mapping[str, list[tuple[str, int]]]) -> Iterable[tuple[str, str, int]]:
    """Each flow, the least of those that are one with it, and how much later than that one it is seen."""
    leads: dict[str, int] = {}
    for label in sorted(near):
        if label in leads:
            continue
        leads[label], left = 0, [label]
        while left:
            flow = left.pop()
            yield flow, label, leads[flow]
            for other, shift in near[flow]:
                if other not in leads:
                    leads[other] = leads[flow] + shift
                    left.append(other)
