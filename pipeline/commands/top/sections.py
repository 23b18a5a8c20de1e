"""Rows and columns of each part of the screen: from how things are to texts, in the order asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.analysis.live_metrics.connections import EndNow
from pipeline.analysis.live_metrics.groups import GroupNow
from pipeline.analysis.live_metrics.traffic import ApiNow, ClientNow, CommandNow
from pipeline.analysis.safety.guard import attempt
from pipeline.commands.top.amounts import UNKNOWN, amount, history, latency, rate, span, trend, volume
from pipeline.commands.top.sort import Order, Sort
from pipeline.embedded.live_monitor import Snapshot

WIDE, WIDEST = 120, 180
"""Columns of a terminal from which on more is shown."""


Cell = tuple[str, str]
"""A text and its style, as rich names it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a section.

    Attributes:
        title: its head.
        cell: of a row's item its text, and its style.
        from_width: columns of the terminal from which on it is shown.
        grows: whether it takes the room that is left.
        sort: by what rows are ordered if it is marked.
        is_text: whether it is aligned to the left.
        most: its width at most, but on the widest terminals; None: any.
    """

    title: str
    cell: Callable[[Any, Snapshot], Cell | str]
    from_width: int = 0
    grows: bool = False
    sort: Sort | None = None
    is_text: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the screen.

    Attributes:
        columns: those that are shown at this width.
        rows: a cell for each column.
        sort: by what rows are ordered.
    """

    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    sort: Sort


def _per_second(count: float, now: Snapshot) -> float:
    return count / now.window.seconds


def _counted(count: int) -> Cell:
    return amount(count), "bold yellow" if count else ""


def _trend(group: GroupNow, _now: Snapshot) -> Cell:
    return trend(group.trend), "bold yellow" if group.is_growing else ""


def _worst(group: GroupNow, _now: Snapshot) -> str:
    if group.worst is None:
        return ""
    topic, partition, lag = group.worst
    return f"{topic}-{partition} {amount(lag)}"


def _since_commit(group: GroupNow, now: Snapshot) -> str:
    return UNKNOWN if group.commit_us is None else span((now.window.last_us - group.commit_us) / 1e6)


def _slow(us: int | None, *, waits: bool) -> Cell:
    return latency(us, waits=waits), "dim" if waits else ""


_RATE = Column("RATE", lambda one, now: rate(_per_second(one.asked, now)), sort=Sort.rate)
_ERRORS = Column("ERRORS", lambda one, _: _counted(one.errors), sort=Sort.errors)
_UNANSWERED = Column("UNANSWERED", lambda one, _: _counted(one.unanswered), WIDE)
_LATENCIES = (
    Column("P50", lambda one, _: _slow(one.p50_us, waits=one.waits)),
    Column("P99", lambda one, _: _slow(one.p99_us, waits=one.waits), sort=Sort.p99),
    Column("MAX", lambda one, _: _slow(one.max_us, waits=one.waits), WIDE),
)
_BYTES = Column("BYTES", lambda one, now: volume(_per_second(one.bytes, now)))

_GROUPS = (
    Column("GROUPS", lambda one, _: one.group_id, grows=True),
    Column("CLUSTER", lambda one, _: one.cluster, WIDEST, is_text=True),
    Column("WORST", _worst, WIDE, is_text=True, most=20),
    Column("MEMBERS", lambda one, _: amount(one.members)),
    Column("PARTITIONS", lambda one, _: amount(one.partitions), WIDEST),
    Column("LAG", lambda one, _: amount(one.lag), sort=Sort.lag),
    Column("TREND", _trend, sort=Sort.trend),
    Column("HISTORY", lambda one, _: history(one.lags)),
    Column("BEHIND", lambda one, _: span(one.behind_s)),
    Column("IN", lambda one, _: rate(one.made), WIDE),
    Column("OUT", lambda one, _: rate(one.taken), WIDE),
    Column("COMMIT", _since_commit),
    Column("REFUSED", lambda one, _: _counted(one.refused), WIDE),
)
_APIS = (
    Column("APIS", lambda one, _: one.name, grows=True),
    _RATE, _ERRORS, _UNANSWERED, *_LATENCIES,
    Column("WAIT", lambda one, _: _slow(one.wait_us, waits=True), WIDE),
    _BYTES,
)  # fmt: skip
_COMMANDS = (
    Column("MONGODB", lambda one, _: f"{one.command} {one.namespace}".rstrip(), grows=True),
    _RATE, _ERRORS, _UNANSWERED, *_LATENCIES,
    Column("DOCUMENTS", lambda one, now: rate(_per_second(one.documents_out, now)), WIDE),
    _BYTES,
)  # fmt: skip
_CLIENTS = (
    Column("CLIENTS", lambda one, _: one.client or UNKNOWN, grows=True),
    Column("HOST", lambda one, _: one.host, is_text=True, most=21),
    Column("CONNECTIONS", lambda one, _: amount(one.connections), WIDEST),
    _RATE, _ERRORS,
    Column("MOSTLY", lambda one, _: one.mostly, is_text=True, most=20),
    Column("SOFTWARE", lambda one, _: one.software, WIDE, is_text=True, most=32),
    _BYTES,
)  # fmt: skip

_ENDS = (
    Column("CONNECTIONS", lambda one, _: f"{one.server}: {one.ended}" if one.server else one.ended, grows=True),
    Column("ENDED", lambda one, _: (amount(one.connections), "bold yellow" if one.is_unmade else "")),
    Column("CLIENTS", lambda one, _: one.host if one.hosts == 1 else amount(one.hosts), is_text=True, most=21),
    Column("LAST", lambda one, now: span((now.window.last_us - one.last_us) / 1e6)),
    Column("BYTES", lambda one, now: volume(_per_second(one.bytes, now))),
)


def sections(now: Snapshot, order: Order, width: int) -> list[Section]:
    """The parts of the screen that have something to show, at a width of the terminal."""
    return list(_all(now, order, width))


def _all(now: Snapshot, order: Order, width: int) -> Iterator[Section]:
    others = order.others
    of_clients = Sort.rate if others is Sort.p99 else others
    parts: tuple[tuple[tuple[Column, ...], Sequence[object], Callable[[Any], tuple[Any, ...]], Sort], ...] = (
        (_GROUPS, now.groups, _BY_GROUP[order.groups], order.groups),
        (_APIS, now.traffic.apis, _BY_OTHER[others], others),
        (_COMMANDS, now.traffic.commands, _BY_OTHER[others], others),
        (_CLIENTS, now.traffic.clients, _BY_OTHER[of_clients], of_clients),
        (_ENDS, now.ends, _by_number, of_clients),
    )
    for columns, items, key, sort in parts:
        shown = tuple(column for column in columns if width >= column.from_width)
        part = attempt(f"panel {columns[0].title}", partial(_section, shown, items, key, sort, now), lambda: None)
        if part is not None and part.rows:
            yield part


def _section(
    columns: tuple[Column, ...],
    items: Sequence[object],
    key: Callable[[Any], tuple[Any, ...]],
    sort: Sort,
    now: Snapshot,
) -> Section:
    return Section(columns, [_row(item, columns, now) for item in sorted(items, key=key)], sort)


def _row(item: object, columns: Sequence[Column], now: Snapshot) -> list[Cell]:
    cells = (column.cell(item, now) for column in columns)
    return [(cell, "") if isinstance(cell, str) else cell for cell in cells]


def _by_lag(group: GroupNow) -> tuple[Any, ...]:
    return group.lag is None, -(group.lag or 0), group.cluster, group.group_id


def _by_trend(group: GroupNow) -> tuple[Any, ...]:
    return group.trend is None, -(group.trend or 0), group.cluster, group.group_id


def _by_number(end: EndNow) -> tuple[Any, ...]:
    return -end.connections, end.server, end.ended


_Counted = ApiNow | CommandNow | ClientNow


def _by_rate(one: _Counted) -> tuple[Any, ...]:
    return -one.asked, _name(one)


def _by_p99(one: ApiNow | CommandNow) -> tuple[Any, ...]:
    return one.waits, one.p99_us is None, -(one.p99_us or 0), _name(one)


def _by_errors(one: _Counted) -> tuple[Any, ...]:
    return -one.errors, -one.asked, _name(one)


def _name(one: _Counted) -> tuple[str, ...]:
    if isinstance(one, ApiNow):
        return one.protocol, one.name
    return (one.command, one.namespace) if isinstance(one, CommandNow) else (one.client, one.host, one.protocol)


_BY_GROUP = {Sort.lag: _by_lag, Sort.trend: _by_trend}
_BY_OTHER: dict[Sort, Callable[[Any], tuple[Any, ...]]] = {
    Sort.rate: _by_rate, Sort.p99: _by_p99, Sort.errors: _by_errors,
}  # fmt: skip
