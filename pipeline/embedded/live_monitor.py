"""How everything is while traffic continues, from landed rows: groups, traffic, incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import CONNECTION
from pipeline.analysis.duplicates.duplicate_flows import counted
from pipeline.analysis.live_metrics.connections import EndNow, ends_now
from pipeline.analysis.live_metrics.groups import GroupNow, groups_now
from pipeline.analysis.live_metrics.traffic import TrafficNow, traffic_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.analysis.safety.guard import InternalError, Noted, attempt
from pipeline.config.settings import StreamSettings
from pipeline.embedded.incident_changes import IncidentKind
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from pipeline.tables import CONNECTIONS, DUPLICATE_FLOWS, EXCHANGES, MONGO_COMMANDS, OFFSET_TIMELINE, STATE_EVENTS

_MOST_SOFTWARE = 10_000
NEWS_US = 30_000_000
"""For so long an incident is marked as new, worse, or of another cause."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How everything is. Times are µs since the epoch.

    Attributes:
        window: the span that rates and latencies are taken over.
        groups, traffic: see there.
        incidents: rows of ``gold.incidents``, what must be done first before the others; ``first_us`` and ``last_us``
            are their times.
        news: by ``incident_id`` what was reported of it in the last moments.
        connections, exchanges, bytes_lost: that ever came, or were lost; what was seen several times counts once.
        pending: requests that wait for their answer.
        first_us, last_us: of the first and the last frame that ever came.
        since_us: what came before was dropped, for there was too much; None: nothing was.
        ends: how connections failed.
    """

    window: Window
    groups: list[GroupNow]
    traffic: TrafficNow
    incidents: Sequence[Mapping[str, Any]]
    news: Mapping[str, IncidentKind]
    connections: int
    exchanges: int
    bytes_lost: int
    pending: int
    first_us: int
    last_us: int
    since_us: int | None
    ends: Sequence[EndNow] = ()


@dataclass(slots=True)
class LiveMonitor:
    """Landed rows in, how everything stands out.

    Args:
        settings: thresholds, and how long halves wait.
        window_us: the span that rates and latencies are taken over, µs.
        ports: TCP ports of servers; empty: all of them.
        by_kernel: whether the compiled kernel decodes, which takes seconds to load; None: where that pays.
    """

    settings: StreamSettings
    window_us: int
    ports: frozenset[int] = frozenset()
    by_kernel: bool | None = True
    _following: StreamingDiagnoser = field(init=False)
    _news: dict[str, tuple[IncidentKind, int]] = field(default_factory=dict)
    _other_ports: set[int] = field(default_factory=set)
    _connections_us: tuple[int, int] | None = None
    _software: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._following = StreamingDiagnoser(self.settings, by_kernel=self.by_kernel)

    @property
    def frames(self) -> int:
        """Taken so far."""
        return self._following.frames

    @property
    def has_something(self) -> bool:
        """Whether there is something to show: messages, or connections that failed."""
        return bool(self._following.frames) or self._following.has_connections

    @property
    def span_us(self) -> tuple[int, int] | None:
        """Times of the first and the last frame, or where there is none of what is known of connections."""
        seen = self._following.gathering
        frames = None if seen.first_us is None or seen.last_us is None else (seen.first_us, seen.last_us)
        return frames or self._connections_us

    @property
    def last_us(self) -> int | None:
        """The end of that span, µs since the epoch; None without any."""
        return None if self.span_us is None else self.span_us[1]

    @property
    def other_ports(self) -> list[int]:
        """Ports of servers that were seen, and not asked for."""
        return sorted(self._other_ports)

    def add(self, frames: pa.Table, gaps: pa.Table) -> None:
        """Take landed rows, each once; those of other ports are left out."""
        if self.ports:
            is_wanted = pc.is_in(frames.column("server_port"), pa.array(sorted(self.ports), pa.int32()))
            others = frames.filter(pc.invert(is_wanted))
            self._other_ports.update(others.column("server_port").unique().to_pylist()[: 100 - len(self._other_ports)])
            elsewhere = others.column("connection_id").combine_chunks().unique()
            gaps = gaps.filter(pc.invert(pc.is_in(gaps.column("connection_id"), elsewhere)))
            frames = frames.filter(is_wanted)
        if frames.num_rows or gaps.num_rows:
            self._note_connections(gaps)
            self._following.add(frames, gaps)

    def _note_connections(self, gaps: pa.Table) -> None:
        stated = gaps.column("ts").filter(pc.equal(gaps.column("method"), CONNECTION)).cast(pa.int64())
        if len(stated):
            times = pc.min_max(stated).as_py()
            before = self._connections_us or (times["min"], times["max"])
            self._connections_us = min(before[0], times["min"]), max(before[1], times["max"])

    def judge(self) -> None:
        """Judge what is kept."""
        if not self.has_something:
            return
        self._following.judge()
        at_us = self.last_us or 0
        for change in self._following.incident_changes():
            if change.kind == "resolved":
                self._news.pop(change.row["incident_id"], None)
            else:
                self._news[change.row["incident_id"]] = change.kind, at_us

    def keep_less(self) -> None:
        """See StreamingDiagnoser."""
        self._following.keep_less()

    @property
    def errors(self) -> tuple[InternalError, ...]:
        """See StreamingDiagnoser."""
        return self._following.errors

    def noting_errors(self) -> AbstractContextManager[Noted]:
        """See StreamingDiagnoser."""
        return self._following.noting_errors()

    def limits(self) -> list[str]:
        """See StreamingDiagnoser."""
        return self._following.limits()

    def now(self, now_us: int | None = None) -> Snapshot | None:
        """How things are; None before anything was judged, or if more came since.

        Args:
            now_us: what time it is, µs since the epoch; None: that of the last frame.
        """
        derived, seen = self._following.derived, self._following.gathering
        if derived is None or self.span_us is None:
            return None
        first_us, last_us = self.span_us
        at_us = max(last_us, now_us or 0)
        window = Window.of(at_us, seen.since_us or first_us, self.window_us)
        copies = derived.of(DUPLICATE_FLOWS)
        states, exchanges, commands = (
            counted(derived.of(table), copies) for table in (STATE_EVENTS, EXCHANGES, MONGO_COMMANDS)
        )
        self._news = {key: news for key, news in self._news.items() if at_us - news[1] <= NEWS_US}
        with self._following.noting_errors():
            groups = attempt(
                "groups as they are now",
                lambda: groups_now(derived.of(OFFSET_TIMELINE), states, window),
                list[GroupNow],
            )
            traffic = attempt(
                "traffic as it is now",
                lambda: traffic_now(exchanges, states, commands, window),
                lambda: TrafficNow([], [], []),
            )
            ends = attempt(
                "connections as they are now", lambda: ends_now(derived.of(CONNECTIONS), window), list[EndNow]
            )
        return Snapshot(
            window,
            groups,
            self._with_software(traffic),
            self._following.incidents,
            {key: kind for key, (kind, _) in self._news.items()},
            self._following.connections,
            self._following.exchanges,
            seen.bytes_lost,
            derived.pending.num_rows,
            first_us,
            last_us,
            seen.since_us,
            ends,
        )

    def _with_software(self, traffic: TrafficNow) -> TrafficNow:
        """The same; what a client once stated of its library is not forgotten with what is dropped."""
        if len(self._software) > _MOST_SOFTWARE:
            self._software.clear()
        clients = []
        for client in traffic.clients:
            key = client.protocol, client.client, client.host
            if client.software:
                self._software[key] = client.software
            clients.append(replace(client, software=self._software.get(key, "")))
        return replace(traffic, clients=clients)
