"""Names of topics that the capture states by their ids alone, inferred from equal offsets or from subscriptions.

Fetch names topics by id since v13, and Produce too, while groups commit by name; what joins both, Metadata, a client
asks for every few minutes only (KIP-516). A client commits the positions that it fetched, and a log ends where the last
record was written: a name and an id that have such offsets in common, and share none with any other, are one topic.
A member of the consumer protocol (KIP-848) subscribes to names and is given ids: where one of each is left, they are
one topic too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.tables import Tables

LEAST_EQUAL = 2
"""Offsets, of a partition each, that must be equal where nothing else competes."""
CLEAR = 8
"""Where something else competes, it must have this many times fewer equal offsets."""
_MOST_ALIKE = 8
"""Where more names, or more ids, have an offset of a partition's number in common, nothing follows: all pairs fit."""

_NEAR_US = 2_000_000
"""Of the same end of a log two statements: a record is written, and a reader learns of it."""


def few_alike(rows: str, key: str) -> str:
    """Those of ``rows`` that few others are equal to in the columns ``key``, as SQL.

    Without this bound equal rows on both sides of a join would be as many pairs as their product.
    """
    return f"(FROM {rows} QUALIFY count(*) OVER (PARTITION BY {key}) <= {_MOST_ALIKE})"


_READ = 'cluster, partition, client_id, host, "offset"'
_END = 'cluster, partition, "offset"'
_EQUAL = f"""
WITH placed AS (
  SELECT cluster, topic, topic_id, partition, kind, client_id, regexp_replace(client, ':[0-9]+$', '') AS host,
         "offset", next_offset, high_watermark, list_timestamp, epoch_us(ts) AS us
  FROM events WHERE coalesce(error_code, 0) = 0
),
named AS (
  SELECT * FROM placed WHERE topic IS NOT NULL AND topic_id IS NULL
),
unnamed AS (
  SELECT * FROM placed WHERE topic IS NULL AND topic_id IS NOT NULL
),
committed AS (
  SELECT cluster, topic, partition, client_id, host, "offset", min(us) AS first_us, max(us) AS last_us
  FROM named WHERE kind IN ('committed', 'txn_committed', 'fetched_commit') AND "offset" > 0
  GROUP BY ALL
),
positions AS (
  SELECT cluster, topic_id, partition, client_id, host, unnest([fetched."offset", next_offset]) AS "offset", us
  FROM unnamed AS fetched WHERE kind = 'fetched'
),
read AS (
  SELECT cluster, topic_id, partition, client_id, host, "offset", min(us) AS first_us, max(us) AS last_us
  FROM positions WHERE "offset" > 0 GROUP BY ALL
),
ended AS (
  SELECT cluster, topic, partition, CASE kind WHEN 'listed' THEN "offset" ELSE next_offset END AS "offset",
         min(us) AS first_us, max(us) AS last_us
  FROM named WHERE kind = 'produced' OR kind = 'listed' AND list_timestamp = -1
  GROUP BY ALL
),
ends AS (
  SELECT cluster, topic_id, partition, CASE kind WHEN 'produced' THEN next_offset ELSE high_watermark END AS "offset",
         min(us) AS first_us, max(us) AS last_us
  FROM unnamed WHERE kind IN ('fetched', 'produced') GROUP BY ALL
),
equal AS (
  SELECT cluster, topic_id, topic, partition, "offset", least(committed.first_us, read.first_us) AS first_us,
         greatest(committed.last_us, read.last_us) AS last_us
  FROM {few_alike("committed", _READ)} AS committed JOIN {few_alike("read", _READ)} AS read USING ({_READ})
  UNION ALL
  SELECT cluster, topic_id, topic, partition, "offset", least(ended.first_us, ends.first_us),
         greatest(ended.last_us, ends.last_us)
  FROM {few_alike("ended", _END)} AS ended JOIN {few_alike("ends", _END)} AS ends USING ({_END})
  WHERE "offset" > 0 AND ends.first_us BETWEEN ended.first_us - {_NEAR_US} AND ended.last_us + {_NEAR_US}
)
SELECT cluster, topic_id, topic, count(DISTINCT (partition, "offset")) AS times, min(first_us) AS first_us,
       max(last_us) AS last_us
FROM equal GROUP BY ALL ORDER BY ALL
"""


class _Pair(NamedTuple):
    cluster: str
    topic_id: str
    topic: str
    times: int
    first_us: int
    last_us: int


def inferred_names(events: pa.Table, subscriptions: pa.Table, catalog: ClusterCatalog) -> dict[tuple[str, str], Seen]:
    """Names of topic ids that facts do not name, by cluster and id, where nothing leaves a doubt.

    Args:
        events: rows of ``silver.offset_events``, named as far as facts go.
        subscriptions: what members subscribe to and are given (pipeline.analysis.statements.subscriptions).
        catalog: what messages state; no other id gets a name that it holds.
    """
    found = _by_offsets(events, catalog)
    return found | _by_subscriptions(subscriptions, catalog.with_inferred(found))


def _by_offsets(events: pa.Table, catalog: ClusterCatalog) -> dict[tuple[str, str], Seen]:
    if not pc.any(pc.and_(pc.is_null(events.column("topic")), pc.is_valid(events.column("topic_id")))).as_py():
        return {}
    tables = Tables({"events": events})
    try:
        pairs = [_Pair(*row) for row in tables.rows(_EQUAL)]
    finally:
        tables.close()
    taken = {(cluster, seen.value) for (cluster, _), seen in catalog.topics.items()}
    return {
        (pair.cluster, pair.topic_id): Seen(pair.topic, pair.first_us, pair.last_us, is_inferred=True)
        for pair in _clear(pairs)
        if (pair.cluster, pair.topic) not in taken
    }


def _by_subscriptions(subscriptions: pa.Table, catalog: ClusterCatalog) -> dict[tuple[str, str], Seen]:
    """Of each assignment the name and the id that are left without those that are known, round by round."""
    offers = {one for one in _given(subscriptions, catalog) if one.names and one.topic_ids - catalog.names.keys()}
    found: dict[tuple[str, str], Seen] = {}
    while offers:
        known = catalog.with_inferred(found).topics
        new = _alone(rest for one in offers if (rest := _rest(one, known)) is not None)
        taken = {(cluster, seen.value) for (cluster, _), seen in known.items()}
        new = {place: seen for place, seen in new.items() if (place[0], seen.value) not in taken}
        if not new:
            break
        found |= new
    return found


def _rest(offer: _Offer, known: Mapping[tuple[str, str], Seen]) -> _Offer | None:
    """An offer without the ids whose names are known, and without these names; None if it is not one of each."""
    topic_ids = {id_: known.get((offer.cluster, id_)) for id_ in offer.topic_ids}
    named = {seen.value for seen in topic_ids.values() if seen is not None}
    rest = offer._replace(
        names=offer.names - named, topic_ids=frozenset(id_ for id_, seen in topic_ids.items() if seen is None)
    )
    return rest if len(rest.names) == len(rest.topic_ids) == 1 else None


class _Offer(NamedTuple):
    """Names, one for each of these ids."""

    cluster: str
    names: frozenset[str]
    topic_ids: frozenset[str]
    first_us: int
    last_us: int


def _given(subscriptions: pa.Table, catalog: ClusterCatalog) -> Iterator[_Offer]:
    """Each assignment beside what its member had subscribed to then."""
    if not subscriptions.num_rows:
        return
    rows = sorted(subscriptions.to_pylist(), key=itemgetter("ts_us", "exchange_id"))
    clusters = catalog.clusters_at((row["server"], row["ts_us"]) for row in rows)
    subscribed: dict[tuple[str, str, str], tuple[frozenset[str], int]] = {}
    for cluster, row in zip(clusters, rows, strict=True):
        member = cluster, row["group_id"], row["member_id"]
        if row["names"] is not None:
            subscribed[member] = frozenset(row["names"]), row["ts_us"]
        names, since_us = subscribed.get(member, (frozenset(), 0))
        yield _Offer(cluster, names, frozenset(row["topic_ids"] or ()), since_us, row["ts_us"])


def _alone(offers: Iterable[_Offer]) -> dict[tuple[str, str], Seen]:
    """The pairs of one name and one id each that no other contradicts."""
    by_id: defaultdict[tuple[str, str], dict[str, list[_Offer]]] = defaultdict(lambda: defaultdict(list))
    by_name: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one in offers:
        (name,), (topic_id,) = one.names, one.topic_ids
        by_id[one.cluster, topic_id][name].append(one)
        by_name[one.cluster, name].add(topic_id)
    found: dict[tuple[str, str], Seen] = {}
    for (cluster, topic_id), some in by_id.items():
        (name, together), *others = some.items()
        if not others and len(by_name[cluster, name]) == 1:
            span = min(one.first_us for one in together), max(one.last_us for one in together)
            found[cluster, topic_id] = Seen(name, *span, is_inferred=True)
    return found


def _clear(pairs: Iterable[_Pair]) -> list[_Pair]:
    """Those that are far ahead of every other pair of their id, and of their name."""
    of: defaultdict[tuple[str, str, str], list[_Pair]] = defaultdict(list)
    for pair in pairs:
        of["id", pair.cluster, pair.topic_id].append(pair)
        of["name", pair.cluster, pair.topic].append(pair)
    return [
        pair
        for (side, *_), some in of.items()
        if side == "id"
        for pair in some
        if pair.times >= LEAST_EQUAL
        and all(
            other is pair or other.times * CLEAR <= pair.times
            for other in (*some, *of["name", pair.cluster, pair.topic])
        )
    ]
