"""What do frames hold that come piece by piece? The same as of all at once, in memory that has a bound.

Halves wait for each other from piece to piece. Of what is paired only stays what derivations and rules read; bodies go
but where a rule may look into one. When it becomes too much the older half goes.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.derive import Gathered, gathered
from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import fit
from pipeline.analysis.hours import span_us
from pipeline.analysis.pairing import exchanges, halves_of, newest
from pipeline.analysis.rules.episodes import without_bodies
from pipeline.analysis.statements.exchanges import KafkaStatements
from pipeline.analysis.tables import Tables
from pipeline.settings import StreamSettings
from pipeline.tables import EXCHANGES, GAPS, MONGO_COMMANDS, MONGO_HANDSHAKES

MOST_EXCHANGES = 200_000
"""Kept at once: some ten minutes of a busy broker, half a gigabyte."""

_MOST_CHUNKS = 64
"""More make each query slower; to put them together copies all of it."""


class Gathering:
    """What was gathered so far.

    Args:
        settings: how long halves wait.
        most: exchanges kept at once.

    Attributes:
        since_us: what came before this was dropped, µs since the epoch; None: nothing was.
        exchanges: completed ones that were ever taken.
    """

    def __init__(self, settings: StreamSettings, most: int = MOST_EXCHANGES) -> None:
        self._settings = settings
        self._most = most
        self._halves: pa.Table | None = None
        self._clocks: pa.Table | None = None
        self._kept = _nothing()
        self.since_us: int | None = None
        self.exchanges = 0

    def add(self, frames: pa.Table, gaps: pa.Table) -> None:
        """Take further rows of ``bronze.frames``, each frame once, and of ``bronze.gaps``."""
        settings = self._settings
        halves = frames if self._halves is None else pa.concat_tables([self._halves, frames])
        paired = exchanges(halves, settings.answer_timeout, settings.abandon_timeout, self._clocks)
        new = gathered(paired, gaps)
        self._halves = halves_of(new.pending, halves)
        last_us = pc.max(halves.column("ts").cast(pa.int64())).as_py() if halves.num_rows else 0
        self._clocks = newest(halves, self._clocks, last_us - span_us(settings.abandon_timeout))
        self.exchanges += new.exchanges.num_rows
        self._kept = _together(self._kept, new, without_bodies(new.exchanges, settings.findings))
        if self._kept.exchanges.num_rows > self._most:
            self._drop()

    @property
    def kept(self) -> Gathered:
        """What is there now."""
        return self._kept

    def _drop(self) -> None:
        """Keep the newer half."""
        times = self._kept.exchanges.column("ts").cast(pa.int64())
        middle = pc.quantile(times, 0.5, interpolation="lower")[0].as_py()
        self.since_us = middle + 1
        self._kept = _since(self._kept, self.since_us)


def _nothing() -> Gathered:
    empty = pa.table({})
    rows = fit(empty, EXCHANGES)
    return Gathered(
        rows, rows, KafkaStatements(None), fit(empty, MONGO_COMMANDS), fit(empty, MONGO_HANDSHAKES), fit(empty, GAPS),
        Facts(),
    )  # fmt: skip


def _together(kept: Gathered, new: Gathered, new_exchanges: pa.Table) -> Gathered:
    parts = [one.kafka.rows for one in (kept, new) if one.kafka.rows is not None]
    kafka = KafkaStatements(_joined(*parts) if parts else None)
    return Gathered(
        _joined(kept.exchanges, new_exchanges),
        new.pending,
        kafka,
        _joined(kept.commands, new.commands),
        _joined(kept.handshakes, new.handshakes),
        _joined(kept.gaps, new.gaps),
        kept.facts.merged(new.kafka.facts()),
    )


def _joined(*tables: pa.Table) -> pa.Table:
    together = pa.concat_tables(tables)
    return together.combine_chunks() if together.column(0).num_chunks > _MOST_CHUNKS else together


def _since(kept: Gathered, us: int) -> Gathered:
    """What is not older than a time. Handshakes stay: a connection states them once."""

    def late(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.greater_equal(rows.column("ts").cast(pa.int64()), us))

    stated = kept.kafka.rows
    if stated is not None:
        stated = stated.filter(pc.greater_equal(stated.column("ts_us"), us))
    tables = Tables({"handshakes": kept.handshakes, "exchanges": late(kept.exchanges)})
    try:
        handshakes = tables.table(
            "SELECT * FROM handshakes WHERE connection_id IN (SELECT connection_id FROM exchanges)"
        ).cast(kept.handshakes.schema)
    finally:
        tables.close()
    return Gathered(
        late(kept.exchanges), kept.pending, KafkaStatements(stated), late(kept.commands), handshakes, late(kept.gaps),
        kept.facts,
    )  # fmt: skip
