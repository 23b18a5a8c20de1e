"""What became of the records of a share-partition (KIP-932): held by whom, until when, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Literal

import duckdb
import pyarrow as pa

from decoder.kafka.apis import ApiKey
from pipeline.analysis.catalog_tables import known_catalog
from pipeline.analysis.rules.kafka.api_groups import SHARE_APIS
from pipeline.analysis.rules.kafka.share_groups.share_states import (
    ACCEPT,
    REJECT,
    RELEASE,
    Delivery,
    SharePlace,
    beats,
    deliveries,
    starts_moved,
)
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Tables
from pipeline.dashboard.queries.progress.members import Key, Member, members
from pipeline.dashboard.queries.progress.partitions import Place, lines
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, ask, ask_rows

MOST_EXCHANGES = 200_000
"""Of share groups, whose bodies are read."""
MOST_HELD = 3000
"""Ranges in one picture: the last ones."""
Ending = Literal["accepted", "released", "rejected", "lock ran out", "held"]
ENDINGS: Final[tuple[Ending, ...]] = ("accepted", "released", "rejected", "lock ran out", "held")
_ENDED_BY: Final[dict[int, Ending]] = {ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected"}
_EPOCH = datetime.fromtimestamp(0, timezone.utc)

# Most lakes have no share groups: gold shows that without a look at all exchanges.
_MINUTES = f"""
SELECT count(*) AS minutes,
       count(*) FILTER (api_key IN {SHARE_APIS}) AS shared
FROM gold.api_latency
WHERE date BETWEEN $first_day AND $last_day AND minute BETWEEN date_trunc('minute', $start) AND $end
"""  # noqa: S608 - our own text

_EXCHANGES = f"""
SELECT protocol, api_key, ts, response_ts, exchange_id, client_id, client_ip, server_ip, server_port, error_codes,
       request_body, CASE WHEN api_key <> {ApiKey.SHARE_GROUP_HEARTBEAT} THEN response_body END AS response_body
FROM exchanges_with_bodies
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end AND protocol = 'kafka'
  AND api_key IN {SHARE_APIS}
ORDER BY ts DESC LIMIT $most
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Held:
    """Records that a member held.

    Attributes:
        first, last: offsets, inclusive.
        deliveries: how often they had been delivered with this time.
        ended: when it acknowledged them, or its lock ran out, or else the end of the span.
        exchange_id: of the answer that gave them out.
    """

    first: int
    last: int
    client_id: str
    member_id: str
    deliveries: int
    began: datetime
    ended: datetime
    how: Ending
    exchange_id: str


@dataclass(frozen=True, slots=True)
class SharesSeen:
    """What was seen of a share-partition.

    Attributes:
        starts: its start offset over time: everything below is done with.
        lines: of the log, see :func:`pipeline.dashboard.queries.progress.partitions.lines`.
        left_out: ranges before those in ``held``.
    """

    place: SharePlace
    scope: Scope
    members: list[Member]
    held: list[Held]
    starts: list[tuple[datetime, int]]
    lines: pa.Table
    left_out: int


@dataclass(frozen=True, slots=True)
class Shares:
    """All of share groups in a span: by share-partition what was delivered, and where it began; the groups' members."""

    delivered: dict[SharePlace, list[Delivery]]
    starts: dict[SharePlace, list[tuple[datetime, int]]]
    groups: list[tuple[str, str]]


def shares(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Shares:
    """Read it; nothing of a lake without.

    Raises:
        NotThereYetError: there are no exchanges.
    """
    if not _may_have(connection, scope):
        return Shares({}, {}, [])
    rows = ask(connection, _EXCHANGES, scope, most=MOST_EXCHANGES)
    try:
        catalog = known_catalog(*(ask(connection, f"FROM silver.{name}") for name in ("brokers", "topics")))
    except NotThereYetError:
        catalog = known_catalog(*(pa.table({}) for _ in range(2)))
    tables = Tables({"exchanges": rows})
    try:
        sources = Sources(tables, catalog)
        delivered: dict[SharePlace, list[Delivery]] = {}
        for one in deliveries(sources):
            delivered.setdefault(one.place, []).append(one)
        starts: dict[SharePlace, list[tuple[datetime, int]]] = {}
        for moved in starts_moved(sources):
            starts.setdefault(moved.place, []).append((_time(moved.us), moved.offset))
        groups = {(beat.cluster, beat.group) for beat in beats(sources)}
    finally:
        tables.close()
    return Shares(delivered, starts, sorted(groups | {(place.cluster, place.group) for place in delivered}))


def _may_have(connection: duckdb.DuckDBPyConnection, scope: Scope) -> bool:
    try:
        found = ask_rows(connection, _MINUTES, scope)[0]
    except NotThereYetError:
        return True
    return bool(found["shared"] or not found["minutes"])


def shares_seen(
    connection: duckdb.DuckDBPyConnection, scope: Scope, known: Shares, place: SharePlace,
    until: datetime | None = None,
) -> SharesSeen | None:  # fmt: skip
    """What was seen of a share-partition; None if nothing was.

    Args:
        connection: to the lake.
        scope: the span.
        known: what share groups did in it.
        place: the share-partition.
        until: how far it is shown at least, though nothing is delivered any more; None: to what was seen last.
    """
    some = known.delivered.get(place, [])
    starts = known.starts.get(place, [])
    times = [*(_time(one.us) for one in some), *(ts for ts, _ in starts)]
    if not times:
        return None
    found = held(some, scope.end)
    times += [one.ended for one in found]
    if until is not None:
        times.append(until)
    span = Scope(min(times), max(*times, min(times) + timedelta(seconds=1)), "kafka")
    shown = found[-MOST_HELD:]
    log = lines(connection, span, Place(place.cluster, place.topic, place.partition, ""))
    weight: dict[Key, int] = {}
    for one in found:
        weight[one.client_id, one.member_id] = weight.get((one.client_id, one.member_id), 0) + 1
    keys = sorted(weight, key=lambda key: (-weight[key], key))
    return SharesSeen(place, span, members(keys), shown, starts, log, len(found) - len(shown))


def held(some: Sequence[Delivery], end: datetime) -> list[Held]:
    """Who held which offsets from when until when, in the order in which that ended.

    Args:
        some: deliveries and acknowledgements of one share-partition, in order of time.
        end: what is held still ends then, unless its lock ran out before.
    """
    open_: list[tuple[int, int, Delivery]] = []
    found: list[Held] = []
    for one in some:
        how = None if one.what is None else _ENDED_BY.get(one.what)
        if one.what is not None and how is None:
            continue  # a gap in the log, or a lock that is renewed
        left: list[tuple[int, int, Delivery]] = []
        for first, last, given in open_:
            low, high = max(first, one.first), min(last, one.last)
            if low > high or (how is not None and given.member != one.member):
                left.append((first, last, given))
                continue
            found.append(_ended(low, high, given, one.us, how))
            left += [(a, b, given) for a, b in ((first, low - 1), (high + 1, last)) if a <= b]
        open_ = left
        if how is None:
            open_.append((one.first, one.last, one))
    end_us = (end - _EPOCH) // timedelta(microseconds=1)
    for first, last, given in open_:
        is_over = 0 < given.lock_us < end_us - given.us
        found.append(_ended(first, last, given, end_us, None if is_over else "held"))
    return sorted(found, key=lambda one: (one.ended, one.first))


def again(found: Sequence[Held], most: int = 500) -> list[dict[str, Any]]:
    """Ranges that were delivered more than once, most often first: how each delivery ended, to whom they went."""
    same: dict[tuple[int, int], list[Held]] = {}
    for one in found:
        same.setdefault((one.first, one.last), []).append(one)
    rows: list[dict[str, Any]] = [
        {
            "first": first, "last": last, "deliveries": max(one.deliveries for one in some),
            "members": list(dict.fromkeys(one.client_id for one in some)), "ends": [one.how for one in some],
            "began": min(one.began for one in some), "ended": max(one.ended for one in some),
        }
        for (first, last), some in same.items()
        if max(one.deliveries for one in some) > 1
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["deliveries"], row["first"]))[:most]


def _ended(first: int, last: int, given: Delivery, us: int, how: Ending | None) -> Held:
    """Without an acknowledgement the lock ran out, at its time if that is known."""
    if how is None:
        how, us = "lock ran out", min(us, given.us + given.lock_us) if given.lock_us else us
    client = given.client.rpartition(" at ")[0]
    return Held(first, last, client, given.member, given.deliveries, _time(given.us), _time(us), how, given.exchange_id)


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
