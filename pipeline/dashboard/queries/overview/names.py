"""Names of groups, topics, partitions, clients, hosts, transactions, namespaces, servers and connections.

Names come from the tables that have few rows of each, and from the timeline, of which each place is read once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.rule import rule_named
from pipeline.dashboard.queries.scope import Scope, rows_if_there

MOST = 20_000
"""Names of one kind that are looked at."""
MOST_FOUND = 12
"""Connections that a search gives."""

GROUP, TOPIC, PARTITION, CLIENT, HOST = "group", "topic", "partition", "client", "host"
TRANSACTION, NAMESPACE, SERVER, CONNECTION, EXCHANGE = "transaction", "namespace", "server", "connection", "exchange"
KINDS = (GROUP, TOPIC, PARTITION, CLIENT, HOST, TRANSACTION, NAMESPACE, SERVER, CONNECTION, EXCHANGE)
"""In the order in which they are shown."""
COUNTED = (GROUP, PARTITION, CLIENT, TRANSACTION, NAMESPACE, SERVER)
"""Those shown with how many have nothing."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that was seen.

    Attributes:
        kind: one of ``KINDS``.
        text: the name; of a partition topic and number.
        cluster: where; empty if it is not of one cluster.
        topic, partition, group_id: of a partition, and a group that reads it, if there is one.
    """

    kind: str
    text: str
    cluster: str = ""
    topic: str | None = None
    partition: int | None = None
    group_id: str | None = None


_WITHIN = "date BETWEEN $first_day AND $last_day AND {ts} BETWEEN $start AND $end"
_SPANS = "first_ts <= $end AND last_ts >= $start"

_PLACES = f"""
SELECT DISTINCT cluster, topic, partition, group_id FROM gold.offset_timeline
WHERE {_WITHIN.format(ts="ts")} LIMIT $most
"""  # noqa: S608 - our own text
_GROUPS = f"SELECT DISTINCT cluster, group_id FROM silver.assignments WHERE {_SPANS} LIMIT $most"  # noqa: S608
_CLIENTS = f"""
SELECT DISTINCT client_id, client_ip, cluster FROM gold.clients
WHERE {_SPANS} AND ($protocol IS NULL OR protocol = $protocol) LIMIT $most
"""  # noqa: S608 - our own text
_TRANSACTIONS = f"""
SELECT DISTINCT cluster, transactional_id FROM silver.transactions
WHERE transactional_id IS NOT NULL AND {_SPANS} LIMIT $most
"""  # noqa: S608 - our own text
_NAMESPACES = f"""
SELECT DISTINCT server, namespace FROM gold.mongo_commands
WHERE namespace IS NOT NULL AND {_WITHIN.format(ts="minute")} LIMIT $most
"""  # noqa: S608 - our own text
_SERVERS = f"""
SELECT DISTINCT server FROM gold.{{table}} WHERE {_WITHIN.format(ts="minute")} LIMIT $most
"""  # noqa: S608 - our own text

# An id is not a name that somebody knows by heart: its beginning, as it is copied, is looked for.
_CONNECTIONS = f"""
SELECT DISTINCT connection_id, client_ip || ':' || client_port AS client FROM silver.exchanges
WHERE {_WITHIN.format(ts="ts")} AND ({{which}}) LIMIT $most
"""  # noqa: S608 - our own text
_EXCHANGES = f"""
SELECT exchange_id FROM silver.exchanges WHERE {_WITHIN.format(ts="ts")} AND exchange_id = $text LIMIT 1
"""  # noqa: S608 - our own text
_CONNECTION_ID = re.compile(r"[0-9a-f]{6,16}")
_EXCHANGE_ID = re.compile(r"[0-9a-f]{16}-[0-9]+")
_ADDRESS = re.compile(r"\[?([0-9a-fA-F.:]+?)\]?:([0-9]{1,5})")


def names(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[Name]:
    """All names that were seen in the span, each once, but for connections and exchanges, which are too many.

    Minutes count that began in the span. What a table that is not there would know is left out.
    """
    first_minute = scope.start.replace(second=0, microsecond=0)
    minutes = Scope(first_minute, max(scope.end, first_minute), scope.protocol)
    found: dict[Name, None] = {}
    if scope.has("kafka"):
        places = rows_if_there(connection, _PLACES, scope, most=MOST)
        groups = {(row["cluster"], row["group_id"]) for row in places if row["group_id"]}
        groups |= {(row["cluster"], row["group_id"]) for row in rows_if_there(connection, _GROUPS, scope, most=MOST)}
        found |= dict.fromkeys(Name(GROUP, group, cluster) for cluster, group in sorted(groups))
        topics = sorted({(row["topic"], row["cluster"]) for row in places})
        found |= dict.fromkeys(Name(TOPIC, topic, cluster, topic) for topic, cluster in topics)
        found |= dict.fromkeys(_partitions(places))
        found |= dict.fromkeys(
            Name(TRANSACTION, row["transactional_id"], row["cluster"])
            for row in rows_if_there(connection, _TRANSACTIONS, scope, most=MOST)
        )
        found |= dict.fromkeys(
            Name(SERVER, row["server"])
            for row in rows_if_there(connection, _SERVERS.format(table="api_latency"), minutes, most=MOST)
        )
    if scope.has("mongodb"):
        commands = rows_if_there(connection, _NAMESPACES, minutes, most=MOST)
        found |= dict.fromkeys(Name(NAMESPACE, text) for text in sorted({row["namespace"] for row in commands}))
        found |= dict.fromkeys(
            Name(SERVER, row["server"])
            for row in rows_if_there(connection, _SERVERS.format(table="mongo_commands"), minutes, most=MOST)
        )
    clients = rows_if_there(connection, _CLIENTS, scope, most=MOST)
    found |= dict.fromkeys(Name(CLIENT, text) for text in sorted({row["client_id"] for row in clients}) if text)
    found |= dict.fromkeys(Name(HOST, text) for text in sorted({row["client_ip"] for row in clients}))
    return list(found)


def _partitions(places: Iterable[dict[str, Any]]) -> list[Name]:
    """Each partition once, with the group that comes first of those that read it."""
    readers: dict[tuple[str, str, int], str] = {}
    for row in places:
        key = row["cluster"], row["topic"], row["partition"]
        known = readers.setdefault(key, row["group_id"])
        if row["group_id"] and (not known or row["group_id"] < known):
            readers[key] = row["group_id"]
    return [
        Name(PARTITION, f"{topic}-{partition}", cluster, topic, partition, group or None)
        for (cluster, topic, partition), group in sorted(readers.items())
    ]


def matching(known: Iterable[Name], text: str) -> list[Name]:
    """Names in which a text is, in any case; of each kind those first that are it, then those that begin with it.

    Args:
        known: names.
        text: not empty.
    """
    wanted = text.casefold()
    found: dict[str, list[tuple[int, int, str, Name]]] = {}
    for name in known:
        shown = name.text.casefold()
        if wanted in shown:
            rank = 0 if shown == wanted else 1 if shown.startswith(wanted) else 2
            found.setdefault(name.kind, []).append((rank, len(shown), shown, name))
    return [one[-1] for kind in KINDS for one in sorted(found.get(kind, ()), key=lambda one: one[:3])]


def ids_like(connection: duckdb.DuckDBPyConnection, scope: Scope, text: str) -> list[Name]:
    """Connections and exchanges that a text names: an id, a connection's first digits, a client's ``ip:port``."""
    wanted = text.strip()
    if _EXCHANGE_ID.fullmatch(wanted):
        return [
            Name(EXCHANGE, row["exchange_id"])
            for row in rows_if_there(connection, _EXCHANGES, scope, most=MOST, text=wanted)
        ]
    if address := _ADDRESS.fullmatch(wanted):
        which = "client_ip = $ip AND client_port = $port"
        values: dict[str, Any] = {"ip": address[1], "port": int(address[2])}
    elif _CONNECTION_ID.fullmatch(wanted):
        # Of sorted texts those that begin with it are between it and it with a character behind all of its own.
        which, values = "connection_id BETWEEN $text AND $behind", {"text": wanted, "behind": wanted + "g"}
    else:
        return []
    found = rows_if_there(connection, _CONNECTIONS.format(which=which), scope, most=MOST_FOUND, **values)
    return [Name(CONNECTION, row["connection_id"]) for row in found]


@dataclass(frozen=True, slots=True)
class Count:
    """How many names of a kind were looked at, and of how many something was found that is not over."""

    kind: str
    seen: int
    troubled: int


def counted(known: Sequence[Name], findings: Iterable[dict[str, Any]]) -> list[Count]:
    """How many names of each kind of ``COUNTED`` there are, and have a finding that is not over; none of no names.

    Args:
        known: names that were looked at.
        findings: rows of ``gold.findings``.
    """
    found = [row for row in findings if (row["state"] or "ongoing") != "resolved"]
    entities = {
        (cluster, *entity)
        for row in found
        for entity in Known.of(row, rule_named(row["rule"]).subject).entities
        for cluster in (row["cluster"], "")
    }
    counts = []
    for kind in COUNTED:
        seen = {(one.cluster, one.text): one for one in known if one.kind == kind}
        if seen:
            counts.append(Count(kind, len(seen), sum(_is_named(one, entities) for one in seen.values())))
    return counts


def _is_named(name: Name, entities: Collection[tuple[str, ...]]) -> bool:
    key = (name.topic or "", str(name.partition)) if name.kind == PARTITION else (name.text,)
    return (name.cluster, name.kind, *key) in entities
