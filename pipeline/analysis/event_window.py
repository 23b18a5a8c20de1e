"""Gathers what frames hold that come piece by piece: the same as of all at once, in bounded memory.

Halves wait for each other from piece to piece. Of what is paired only stays what derivations and rules read; bodies go
but where a rule may look into one. When it becomes too much the older half goes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import NO_LOSS
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import Gathered, gathered
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.hours import span_us
from pipeline.analysis.pairing import exchanges, halves_of, newest
from pipeline.analysis.rules.bodies_read import without_bodies
from pipeline.analysis.statements.exchanges import placed
from pipeline.config.settings import StreamSettings
from pipeline.lake.arrow import with_plain_texts
from pipeline.tables import (
    EXCHANGES_WITH_BODIES,
    FRAMES,
    GAPS,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    RECORD_BATCHES,
    STATE_EVENTS,
)

MOST_EXCHANGES = 200_000
"""Kept at once: some ten minutes of a busy broker, half a gigabyte."""

ROWS_AN_EXCHANGE = 5
"""Rows of all kinds that may be kept for each: recorded ones have two to four, one Fetch can have thousands."""

BYTES_AN_EXCHANGE = 3_000
"""Bytes of them: recorded ones have one to two thousand."""

MOST_FACTS = 20_000
"""Servers, and topic ids, that are known at once: some 10 MB of each."""

Limit = Literal["rows", "halves", "connections", "names"]
"""Of what there was too much: something was dropped that may still have mattered."""

TABLES = {
    "exchanges": EXCHANGES_WITH_BODIES, "events": OFFSET_EVENTS, "batches": RECORD_BATCHES, "states": STATE_EVENTS,
    "commands": MONGO_COMMANDS, "handshakes": MONGO_HANDSHAKES, "gaps": GAPS,
}  # fmt: skip
"""Where rows of each part of :class:`pipeline.analysis.derive.Gathered` belong."""
_MOST_CHUNKS = 64
"""More make each query slower; to put them together copies all of it."""


class EventWindow:
    """What was gathered so far.

    Args:
        settings: how long halves wait.
        most: exchanges kept at once.
        stays: share of them that :meth:`drop` keeps.
        since_us: nothing that came before this is given, µs since the epoch.

    Attributes:
        since_us: what came before this was dropped or never given, µs since the epoch; None: nothing was.
        exchanges: completed ones that were ever taken.
        connections: those with frames ever taken; one that was silent for longer than halves wait starts counting
        again.
        bytes_lost: in all gaps that were ever taken.
        first_us, last_us: times of the first and the last frame, µs since the epoch; None without any.
        reached: limits that were.
    """

    def __init__(
        self, settings: StreamSettings, most: int = MOST_EXCHANGES, since_us: int | None = None, stays: float = 0.5
    ) -> None:
        self._settings = settings
        self._most = most
        self._stays = stays
        self._halves = self._clocks = schema_of(FRAMES).empty_table()
        self._kept = _nothing()
        self.since_us = since_us
        self.exchanges = self.connections = self.bytes_lost = 0
        self.first_us: int | None = None
        self.last_us: int | None = None
        self.reached: set[Limit] = set()

    def add(self, frames: pa.Table, gaps: pa.Table) -> None:
        """Take further rows of ``bronze.frames``, each frame once, and of ``bronze.gaps``."""
        settings = self._settings
        self._count(frames, gaps)
        halves = pa.concat_tables([self._halves, frames])
        paired = exchanges(
            halves, settings.response_timeout, settings.abandon_timeout, self._clocks, copies_texts=False
        )  # fmt: skip
        new = gathered(paired, gaps, self._kept.catalog)
        new = replace(new, pending=with_plain_texts(new.pending))
        self._halves = self._few("halves", halves_of(new.pending, halves))
        last_us = pc.max(halves.column("ts").cast(pa.int64())).as_py() if halves.num_rows else 0
        self._clocks = self._few(
            "connections", newest(halves, self._clocks, last_us - span_us(settings.abandon_timeout))
        )
        catalog = new.catalog.newest(MOST_FACTS)
        if catalog is not new.catalog:
            self.reached.add("names")
        self.take(replace(new, catalog=catalog))

    def _few(self, limit: Limit, frames: pa.Table) -> pa.Table:
        """All, or the newest half of what may be kept."""
        if frames.num_rows <= self._most and frames.nbytes <= self._most * BYTES_AN_EXCHANGE // 2:
            return frames
        self.reached.add(limit)
        kept = min(self._most, frames.num_rows) // 2
        return frames.sort_by([("ts", "descending")]).slice(0, kept).combine_chunks()

    def take(self, new: Gathered) -> None:
        """Take exchanges that others have paired, with what they state; its catalog is all that is known."""
        kept = self._kept
        self.exchanges += new.exchanges.num_rows
        if new.catalog.servers_changed(kept.catalog) or new.catalog.names_learned(kept.catalog):
            kept = _placed(kept, new.catalog)
        few = without_bodies(new.exchanges, self._settings.findings)
        self._kept = _together(kept, replace(new, exchanges=few))

    @property
    def is_full(self) -> bool:
        """Whether it is time to judge, and then to :meth:`drop`."""
        return self.holds(self._most)

    def holds(self, most: int) -> bool:
        """Whether this many exchanges are kept, or more rows or bytes than this many should have."""
        kept = self._aged
        return bool(
            self._kept.exchanges.num_rows >= most
            or sum(rows.num_rows for rows in kept) >= most * ROWS_AN_EXCHANGE
            or sum(rows.nbytes for rows in kept) >= most * BYTES_AN_EXCHANGE
        )

    @property
    def _aged(self) -> list[pa.Table]:
        """What is dropped when it is old."""
        return [getattr(self._kept, name) for name in TABLES if name != "handshakes"]

    def _count(self, frames: pa.Table, gaps: pa.Table) -> None:
        is_loss = pc.invert(reduce(pc.or_, (pc.starts_with(gaps.column("method"), begin) for begin in NO_LOSS)))
        self.bytes_lost += pc.sum(gaps.column("bytes_lost").filter(is_loss)).as_py() or 0
        if not frames.num_rows:
            return
        ids = frames.column("connection_id").unique()
        known = self._clocks.column("connection_id").combine_chunks()
        self.connections += len(ids) - (pc.sum(pc.is_in(ids, known)).as_py() or 0)
        times = pc.min_max(frames.column("ts").cast(pa.int64())).as_py()
        self.first_us = min(times["min"], times["min"] if self.first_us is None else self.first_us)
        self.last_us = max(times["max"], times["max"] if self.last_us is None else self.last_us)

    @property
    def kept(self) -> Gathered:
        """What is there now."""
        return self._kept

    def drop(self) -> None:
        """Keep the newer part, or less if that is still too much."""
        self.reached.add("rows")
        while True:
            times = pa.chunked_array(
                [some for rows in self._aged for some in rows.column("ts").cast(pa.int64()).chunks]
            )
            if not len(times):
                return
            self.since_us = pc.quantile(times, 1 - self._stays, interpolation="lower")[0].as_py() + 1
            self._kept = _since(self._kept, self.since_us, self._most)
            if not self.is_full:
                return


def _nothing() -> Gathered:
    tables = {name: fit(pa.table({}), table) for name, table in TABLES.items()}
    return Gathered(pending=fit(pa.table({}), EXCHANGES_WITH_BODIES), catalog=ClusterCatalog(), **tables)


def _placed(kept: Gathered, catalog: ClusterCatalog) -> Gathered:
    return replace(kept, **{name: placed(getattr(kept, name), catalog) for name in ("events", "batches", "states")})


def _together(kept: Gathered, new: Gathered) -> Gathered:
    tables = {name: _joined(getattr(kept, name), getattr(new, name)) for name in TABLES}
    return Gathered(pending=new.pending, catalog=new.catalog, **tables)


def _joined(*tables: pa.Table) -> pa.Table:
    together = pa.concat_tables(tables)
    return together.combine_chunks() if together.column(0).num_chunks > _MOST_CHUNKS else together


def _since(kept: Gathered, us: int, most: int) -> Gathered:
    """What is not older than a time. Handshakes of connections that continue stay: a connection states them once."""
    late = {
        name: rows.filter(pc.greater_equal(rows.column("ts").cast(pa.int64()), us))
        for name in TABLES
        if name != "handshakes"
        for rows in [getattr(kept, name)]
    }
    going_on = late["exchanges"].column("connection_id")
    handshakes = kept.handshakes.filter(pc.is_in(kept.handshakes.column("connection_id"), going_on.combine_chunks()))
    newest_ones = handshakes.slice(max(0, handshakes.num_rows - most))
    return Gathered(pending=kept.pending, catalog=kept.catalog, handshakes=newest_ones, **late)
