"""Which servers are brokers of one cluster, inferred where no message names the cluster of some of them.

Metadata names a cluster's id, and clients ask for it every few minutes; it names brokers by host names, too, so that a
coordinator that is asked for no Metadata itself is not known by its address. A client commits at the coordinator what
it fetches at the partition's leader, by the same names, partitions and offsets, and topic ids are unique (KIP-516):
servers that have one of these in common, and nothing that contradicts it, are of one cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen, is_address
from pipeline.analysis.inferred_names import CLEAR, LEAST_EQUAL, few_alike
from pipeline.analysis.tables import Tables

_COMMITS = "('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'fetched_commit')"
_PLACED = f"""
    WITH rows AS (
        SELECT cluster, topic, coalesce(topic, topic_id) AS name, partition, coalesce(client_id, '') AS client_id,
            host_of(client) AS host, kind IN {_COMMITS} AS is_commit, error_code, "offset",
            next_offset, epoch_us(ts) AS us
        FROM events WHERE kind = 'fetched' OR kind IN {_COMMITS}
    )
"""

_POSITION = 'partition, client_id, host, "offset"'
_BY_PLACE = f"""
    {_PLACED}, places AS (
        SELECT client_id, host, topic, partition, any_value(cluster) FILTER (is_commit) AS one,
            any_value(cluster) FILTER (NOT is_commit) AS other, min(us) AS first_us, max(us) AS last_us
        FROM rows WHERE topic IS NOT NULL GROUP BY ALL
        HAVING count(DISTINCT cluster) FILTER (is_commit) = 1 AND count(DISTINCT cluster) FILTER (NOT is_commit) = 1
    )
    SELECT one, other, min(first_us) AS first_us, max(last_us) AS last_us
    FROM places WHERE one <> other GROUP BY ALL ORDER BY ALL
"""
"""A client reads a partition at one server, and asks for or commits its offsets at another one, and nowhere else."""
_BY_OFFSETS = f"""
    {_PLACED}, committed AS (
        SELECT cluster, topic, partition, client_id, host, "offset", min(us) AS first_us, max(us) AS last_us
        FROM rows WHERE is_commit AND topic IS NOT NULL AND coalesce(error_code, 0) = 0 AND "offset" > 0 GROUP BY ALL
    ), positions AS (
        SELECT cluster, topic, name, partition, client_id, host, unnest(["offset", next_offset]) AS "offset", us
        FROM rows WHERE NOT is_commit
    ), read AS (
        SELECT cluster, topic, name, partition, client_id, host, "offset", min(us) AS first_us, max(us) AS last_us
        FROM positions WHERE "offset" > 0 GROUP BY ALL
    ), unnamed AS (
        FROM read WHERE topic IS NULL
    ), equal AS (
        SELECT c.cluster AS one, r.cluster AS other, topic, r.name, partition, "offset",
            least(c.first_us, r.first_us) AS first_us, greatest(c.last_us, r.last_us) AS last_us
        FROM {few_alike("committed", f"topic, {_POSITION}")} AS c JOIN {few_alike("read", f"topic, {_POSITION}")} AS r
            USING (topic, {_POSITION})
        UNION ALL
        SELECT c.cluster, r.cluster, c.topic, r.name, partition, "offset",
            least(c.first_us, r.first_us), greatest(c.last_us, r.last_us)
        FROM {few_alike("committed", _POSITION)} AS c JOIN {few_alike("unnamed", _POSITION)} AS r USING ({_POSITION})
    ), judged AS (
        SELECT *, count(DISTINCT other) OVER (PARTITION BY one, topic, partition, "offset") > 1
            OR count(DISTINCT one) OVER (PARTITION BY other, name, partition, "offset") > 1 AS is_doubtful
        FROM equal
    )
    SELECT one, other, min(first_us) AS first_us, max(last_us) AS last_us
    FROM judged WHERE one <> other GROUP BY one, other
    HAVING count(DISTINCT (topic, partition, "offset")) FILTER (NOT is_doubtful)
        >= greatest({LEAST_EQUAL}, {CLEAR} * count(DISTINCT (topic, partition, "offset")) FILTER (is_doubtful))
    ORDER BY ALL
"""
"""The offsets that a client commits at one server are those that it reads at another one."""
_BY_IDS = """
    WITH named AS (
        SELECT topic_id, cluster, epoch_us(ts) AS us FROM events WHERE topic_id IS NOT NULL
        UNION ALL SELECT unnest(topic_ids) AS topic_id, cluster, ts_us FROM members
    ), clusters AS (
        SELECT topic_id, cluster, min(us) AS first_us, max(us) AS last_us FROM named
        WHERE topic_id <> $none GROUP BY ALL
    )
    SELECT min(cluster) OVER of_id AS one, cluster AS other, first_us, last_us FROM clusters
    WINDOW of_id AS (PARTITION BY topic_id) ORDER BY ALL
"""
"""Servers that speak of one topic id."""
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class _Link(NamedTuple):
    one: str
    other: str
    first_us: int
    last_us: int


def inferred_clusters(
    events: pa.Table, subscriptions: pa.Table, catalog: ClusterCatalog
) -> dict[tuple[str, str], Seen]:
    """By server and cluster, the clusters of servers that do not state one, where nothing leaves a doubt.

    Where no server of a cluster is known by its id, the least address stands for it.

    Args:
        events: rows of ``silver.offset_events``, with their clusters as far as facts go.
        subscriptions: what members are given (pipeline.analysis.statements.subscriptions).
        catalog: what is stated.
    """
    members = _members(subscriptions, catalog)
    known = {*pc.unique(events.column("cluster")).to_pylist(), *pc.unique(members.column("cluster")).to_pylist()}
    if len(known) < 2 or not any(map(is_address, known)):
        return {}
    tables = Tables({"events": events, "members": members})
    try:
        links = [_Link(*row) for row in tables.rows(_BY_IDS, none=_NO_ID)]
        links += [_Link(*row) for query in (_BY_PLACE, _BY_OFFSETS) for row in tables.rows(query)]
    finally:
        tables.close()
    return _together(links)


def _members(subscriptions: pa.Table, catalog: ClusterCatalog) -> pa.Table:
    rows = subscriptions.to_pylist()
    return pa.table(
        {
            "cluster": pa.array(catalog.clusters_at((row["server"], row["ts_us"]) for row in rows), pa.string()),
            "topic_ids": pa.array([row.get("topic_ids") or [] for row in rows], pa.list_(pa.string())),
            "ts_us": pa.array([row["ts_us"] for row in rows], pa.int64()),
        }
    )


def _together(links: Iterable[_Link]) -> dict[tuple[str, str], Seen]:
    """Of servers that are linked, those whose cluster is not known, with that of the others; not if these have two."""
    near: defaultdict[str, dict[str, None]] = defaultdict(dict)
    seen: dict[str, tuple[int, int]] = {}
    for link in links:
        near[link.one][link.other] = near[link.other][link.one] = None
        for place in (link.one, link.other):
            first_us, last_us = seen.get(place, (link.first_us, link.last_us))
            seen[place] = min(first_us, link.first_us), max(last_us, link.last_us)
    found: dict[tuple[str, str], Seen] = {}
    for some in _components(near):
        stated = [place for place in some if not is_address(place)]
        if len(stated) > 1:
            continue
        cluster = stated[0] if stated else min(some)
        for server in some:
            if server != cluster:
                found[server, cluster] = Seen(cluster, *seen[server], is_inferred=True)
    return found


def _components(near: Mapping[str, Iterable[str]]) -> Iterable[list[str]]:
    rest = dict.fromkeys(sorted(near))
    while rest:
        first = next(iter(rest))
        reached, waiting = {first: None}, [first]
        while waiting:
            new = [place for place in near[waiting.pop()] if place not in reached]
            reached.update(dict.fromkeys(new))
            waiting += new
        for place in reached:
            del rest[place]
        yield list(reached)
