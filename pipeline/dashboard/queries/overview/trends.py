"""What grows while an incident continues: a line for each of lag, records held back, latency, or how often it came."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import Any, Literal

import duckdb

from pipeline.analysis.live_metrics.lag import lag_now
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.safety.guard import attempt
from pipeline.dashboard.queries.progress.partitions import IS_STABLE_STATED
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, ask_rows, rows_if_there, widened

POINTS = 40
"""Of a line."""
MOST_EVIDENCE = 400
"""Exchanges of one incident whose times and latencies are read."""
_AROUND = 1.3
"""A line is so many times as long as its incident."""
_END = "last_stable_high_watermark"

Kind = Literal["lag", "held back", "latency", "times"]


@dataclass(frozen=True, slots=True)
class Trend:
    """A line.

    Attributes:
        kind: ``lag``: records that a group has not committed; ``held back``: records beyond the last stable offset;
            ``latency``: the slowest answer of its evidence, in ms; ``times``: exchanges of its evidence so far.
        points: times and values, in order; the last has the time of the last statement.
        place: topic and partition of offsets; empty: of none.
        offsets: of lag those from the committed one to the end of the log, of what is held back those from the last
            stable one, at the last point; more than records where some are transaction markers, or removed.
        band: of each point the least and the greatest value since the point before; empty: the value is both.
    """

    kind: Kind
    points: tuple[tuple[datetime, float], ...]
    place: str = ""
    offsets: int | None = None
    band: tuple[tuple[float, float], ...] = ()


_IS_STATED = f"{IS_STABLE_STATED} AND last_stable_high_watermark IS NOT NULL"
"""Both from one response: what is known from elsewhere of the end of the log says nothing of what is held back."""
# Each place by itself: its rows are together, so that most files are not read.
_OFFSETS = f"""
SELECT least($points - 1, floor($points * epoch(ts - $start) / epoch($end - $start)))::INT AS point,
  arg_max(high_watermark, (ts, exchange_id, ordinal)) FILTER (high_watermark IS NOT NULL) AS high_watermark,
  arg_max(last_stable_offset, (ts, ordinal)) FILTER ({_IS_STATED}) AS last_stable_offset,
  arg_max(last_stable_high_watermark, (ts, ordinal)) FILTER ({_IS_STATED}) AS last_stable_high_watermark,
  arg_max({{'lag': lag, 'high': high_watermark, 'committed': committed_offset}}, (ts, exchange_id, ordinal))
    FILTER (group_id = $group_id AND lag IS NOT NULL) AS stood,
  min(lag) FILTER (group_id = $group_id) AS least_lag, max(lag) FILTER (group_id = $group_id) AS greatest_lag,
  max(ts) AS seen
FROM gold.offset_timeline
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND cluster = $cluster AND topic = $topic AND partition = $partition
GROUP BY ALL
ORDER BY ALL
"""  # noqa: S608 - our own text

# Transaction markers that a fetch returned beyond the first offset: they hold no records.
_MARKERS = f"""
SELECT DISTINCT base_offset FROM silver.record_batches
WHERE {IN_SPAN} AND cluster = $cluster AND coalesce(topic, topic_id) = $topic AND partition = $partition
  AND source = 'fetch' AND is_control AND base_offset >= $first
ORDER BY base_offset LIMIT $most
"""  # noqa: S608 - our own text
_MOST_MARKERS = 1_000_000

_EVIDENCE = """
SELECT incident_id, list_distinct(flatten(list(evidence)))[:$most] AS ids
FROM gold.findings
WHERE incident_id IN (SELECT unnest($incidents::VARCHAR[]))
GROUP BY incident_id
"""

_EXCHANGES = """
SELECT exchange_id, ts, coalesce(service_us, latency_us) AS latency_us FROM silver.exchanges
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND exchange_id IN (SELECT unnest($ids::VARCHAR[]))
"""


def trends(connection: duckdb.DuckDBPyConnection, incidents: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Trend]]:
    """Of each incident what grows, with its id, as soon as it is known; nothing where the lake does not show it.

    Args:
        connection: to the lake.
        incidents: rows of ``gold.incidents``; few: each of them is asked by itself.

    Raises:
        UserError: a table cannot be read.
    """
    rest = []
    for row in incidents:
        trend = (
            attempt("trend of an incident", partial(_of_offsets, connection, row), _none) if _is_placed(row) else None
        )
        if trend is None:
            rest.append(row)
        else:
            yield row["incident_id"], trend
    yield from attempt("trends of incidents", partial(_of_evidence, connection, rest), dict[str, Trend]).items()


def _none() -> None:
    return None


def _is_placed(row: dict[str, Any]) -> bool:
    has_line = bool(row["group_id"]) or rule_named(row["rule"]).is_at_last_stable_offset
    return row["topic"] is not None and row["partition"] is not None and has_line


def _span(row: dict[str, Any]) -> Scope:
    return widened(Scope(row["first_ts"], row["last_ts"]), _AROUND)


def merged(spans: Iterable[Scope]) -> list[Scope]:
    """The times that are in any of these spans, each once and in order: what is between them is not read."""
    found: list[Scope] = []
    for span in sorted(spans, key=lambda span: span.start):
        if found and span.start <= found[-1].end:
            found[-1] = Scope(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(Scope(span.start, span.end))
    return found


def _of_offsets(connection: duckdb.DuckDBPyConnection, row: dict[str, Any], span: Scope | None = None) -> Trend | None:
    within = span or _span(row)
    stated = ask_rows(
        connection, _OFFSETS, within, points=POINTS, cluster=row["cluster"], topic=row["topic"],
        partition=row["partition"], group_id=row["group_id"] or "",
    )  # fmt: skip
    if not stated:
        return None
    first, last = stated[0]["point"], stated[-1]["point"]
    if span is None and last - first < POINTS // 2:  # most of the time nothing was seen: look at the rest of it
        step = (within.end - within.start) / POINTS
        return _of_offsets(connection, row, Scope(within.start + first * step, within.start + (last + 1) * step))
    is_held = rule_named(row["rule"]).is_at_last_stable_offset
    place = f"{row['topic']}-{row['partition']}"
    if is_held:
        held = held_back(stated, _markers(connection, row, within, stated))
        points = _points(within, [(at, float(records)) for at, records, _ in held], stated[-1]["seen"])
        return Trend("held back", points, place, held[-1][2]) if len(held) > 1 else None
    lags = lags_of(stated)
    values = [(at, float(lag)) for at, lag, _ in lags]
    points = _points(within, values, stated[-1]["seen"])
    band = band_of(values, stated)[: len(points)]
    return Trend("lag", points, place, lags[-1][2], band) if len(lags) > 1 else None


def band_of(values: Sequence[tuple[int, float]], stated: Sequence[dict[str, Any]]) -> tuple[tuple[float, float], ...]:
    """Of each point the least and the greatest lag: at its end, and of what was stated since the point before.

    Args:
        values: index and lag at the end of each point, in order.
        stated: rows with ``point``, ``least_lag`` and ``greatest_lag``, both None where the group stated nothing.
    """
    rows = {row["point"]: row for row in stated}
    band = []
    for at, value in values:
        row = rows.get(at, {})
        least, greatest = row.get("least_lag"), row.get("greatest_lag")
        band.append(
            (value if least is None else min(value, least), value if greatest is None else max(value, greatest))
        )
    return tuple(band)


def lags_of(stated: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """How far a group is behind, from when it and the end of the log are known: point, records, offsets.

    Args:
        stated: rows with ``point``, an index, in its order, ``high_watermark`` and ``stood``, the last statement of the
            group: its ``lag``, ``high`` and ``committed``; None where nothing was stated: it is as it was then.
    """
    known = {row["point"]: row for row in stated}
    high = stood = None
    values: list[tuple[int, int, int]] = []
    for point in range(min(known, default=0), max(known, default=-1) + 1):
        row = known.get(point, {})
        high = row.get("high_watermark") if row.get("high_watermark") is not None else high
        stood = row.get("stood") or stood
        lag = lag_now(stood["lag"], stood["high"], stood["committed"], high) if stood else None
        if lag is not None and stood and high is not None:
            values.append((point, lag, max(high - (stood["committed"] or 0), lag)))
    return values


def _points(span: Scope, values: Iterable[tuple[int, float]], seen: datetime) -> tuple[tuple[datetime, float], ...]:
    """Each value at the end of its point, up to the last statement."""
    width = (span.end - span.start) / POINTS
    return tuple(
        (min(span.start + width * (at + 1), seen), value) for at, value in values if span.start + width * at <= seen
    )


def _markers(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], span: Scope, stated: Sequence[dict[str, Any]]
) -> list[int]:
    known = [one["last_stable_offset"] for one in stated if one["last_stable_offset"] is not None]
    found = rows_if_there(
        connection, _MARKERS, span, cluster=row["cluster"], topic=row["topic"], partition=row["partition"],
        first=min(known, default=0), most=_MOST_MARKERS,
    )  # fmt: skip
    return [one["base_offset"] for one in found]


def held_back(stated: Sequence[dict[str, Any]], markers: Sequence[int]) -> list[tuple[int, int, int]]:
    """What waits beyond the last stable offset, from when it is known to its last statement: point, records, offsets.

    Args:
        stated: rows with ``point``, an index, in its order, ``last_stable_offset`` and ``last_stable_high_watermark``,
            each None where nothing was stated: it is as it was then.
        markers: offsets of transaction markers, in order: they hold no records.
    """
    known = {row["point"]: row for row in stated}
    high = stable = None
    values: list[tuple[int, int, int]] = []
    for point in range(min(known, default=0), max(known, default=-1) + 1):
        row = known.get(point, {})
        high = row.get(_END) if row.get(_END) is not None else high
        stable = row.get("last_stable_offset") if row.get("last_stable_offset") is not None else stable
        if high is not None and stable is not None:
            offsets = max(0, high - stable)
            between = bisect_left(markers, high) - bisect_left(markers, stable) if offsets else 0
            values.append((point, max(0, offsets - between), offsets))
    return values


def _of_evidence(connection: duckdb.DuckDBPyConnection, rows: Sequence[dict[str, Any]]) -> dict[str, Trend]:
    if not rows:
        return {}
    named = ask_rows(connection, _EVIDENCE, incidents=[row["incident_id"] for row in rows], most=MOST_EVIDENCE)
    ids = {row["incident_id"]: set(row["ids"] or ()) for row in named}
    wanted = sorted(set().union(*ids.values()))
    if not wanted:
        return {}
    spans = merged(Scope(row["first_ts"], row["last_ts"]) for row in rows)
    exchanges = [one for span in spans for one in ask_rows(connection, _EXCHANGES, span, ids=wanted)]
    found = {}
    for row in rows:
        mine = [one for one in exchanges if one["exchange_id"] in ids.get(row["incident_id"], ())]
        if len(mine) > 1:
            kind: Kind = rule_named(row["rule"]).shown_by.grows
            fold = _slowest if kind == "latency" else _so_far
            around = _span(row)
            values = fold(mine, around)
            points = _points(around, enumerate(values), max(one["ts"] for one in mine))
            least = _quickest(mine, around) if kind == "latency" else values
            found[row["incident_id"]] = Trend(kind, points, band=tuple(zip(least, values, strict=True))[: len(points)])
    return found


def _folded(
    rows: Sequence[dict[str, Any]], span: Scope, of: Callable[[list[dict[str, Any]]], float]
) -> tuple[float, ...]:
    buckets: list[list[dict[str, Any]]] = [[] for _ in range(POINTS)]
    for row in rows:
        share = (row["ts"] - span.start) / (span.end - span.start)
        buckets[min(max(int(share * POINTS), 0), POINTS - 1)].append(row)
    return tuple(map(of, buckets))


def _slowest(rows: Sequence[dict[str, Any]], span: Scope) -> tuple[float, ...]:
    return _folded(rows, span, lambda bucket: max((one["latency_us"] or 0 for one in bucket), default=0) / 1000)


def _quickest(rows: Sequence[dict[str, Any]], span: Scope) -> tuple[float, ...]:
    return _folded(rows, span, lambda bucket: min((one["latency_us"] or 0 for one in bucket), default=0) / 1000)


def _so_far(rows: Sequence[dict[str, Any]], span: Scope) -> tuple[float, ...]:
    return tuple(accumulate(_folded(rows, span, lambda bucket: float(len(bucket)))))
