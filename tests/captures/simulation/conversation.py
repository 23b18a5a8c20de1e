"""A recording as rows that can be played again: what its exchanges hold, and what must change when it is repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import CONNECTION
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import gathered
from pipeline.analysis.pairing import exchanges
from pipeline.analysis.rules.bodies_read import without_bodies
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from tests.captures.simulation.pace import Micros
from tests.pipeline.analysis.rules.incidents import Recording

PARTS = ("exchanges", "events", "batches", "states", "commands", "handshakes", "gaps")
"""Tables of :class:`pipeline.analysis.derive.Gathered`."""
NAMES = ("group_id", "member_id", "client_id", "topic", "topic_id", "transactional_id")
"""Columns of names that another copy of the conversation has of its own."""


@dataclass(frozen=True)
class Conversation:
    """What was recorded, in the order in which it was complete.

    Attributes:
        recording: what it is of.
        parts: tables by the names of PARTS.
        times: of their rows, µs since the epoch: of exchanges when they were complete.
        grown: of each row of events and batches, how many offsets its partition's log has in the end.
        generations: of each row of events and states, how many generations its group had.
        catalog: clusters and topic names.
    """

    recording: Recording
    parts: dict[str, pa.Table]
    times: dict[str, Micros]
    grown: dict[str, Micros]
    generations: dict[str, Micros]
    catalog: ClusterCatalog

    @classmethod
    def of(cls, recording: Recording, settings: StreamSettings) -> Conversation:
        """Read a recording."""
        landed = read_inputs([str(recording.pcap)])
        paired = exchanges(decoded(landed.frames), settings.response_timeout, settings.abandon_timeout)
        held = gathered(paired, landed.gaps)
        parts, times = {}, {}
        for name in PARTS:
            rows = getattr(held, name)
            rows = without_bodies(rows, settings.findings) if name == "exchanges" else rows
            if name == "gaps":  # rows of connections state times and addresses of the recording
                rows = rows.filter(pc.not_equal(rows.column("method"), CONNECTION))
            parts[name], times[name] = _in_order(rows)
        _in_an_old_cluster(parts, times)
        ends = _most(parts["events"], _PLACE, ("next_offset", "high_watermark", "offset"))
        grown = {name: _looked_up(parts[name], _PLACE, ends) for name in ("events", "batches")}
        generations = _most(
            pa.concat_tables([parts[name].select(("group_id", "generation")) for name in ("events", "states")]),
            ("group_id",), ("generation",),
        )  # fmt: skip
        last = {name: _looked_up(parts[name], ("group_id",), generations) for name in ("events", "states")}
        return cls(recording, parts, times, grown, last, held.catalog)

    @property
    def span_us(self) -> tuple[int, int]:
        """When it began and ended, µs since the epoch."""
        times = np.concatenate([self.times[name] for name in PARTS])
        return int(times.min()), int(times.max())

    @cached_property
    def groups(self) -> list[str]:
        """Consumer groups that take part."""
        known = self.parts["states"].column("group_id").unique().to_pylist()
        return sorted(name for name in known if name)

    @cached_property
    def quoted_names(self) -> str:
        """A regular expression of all names (see NAMES) as JSON quotes them; "" without any."""
        names: set[str] = set()
        for part in ("exchanges", "events", "batches", "states"):
            rows = self.parts[part]
            for name in NAMES:
                if name in rows.column_names:
                    names.update(value for value in rows.column(name).unique().to_pylist() if value)
        return f'"({"|".join(re.escape(name) for name in sorted(names))})"' if names else ""


_PLACE = ("topic", "partition")


_MADE_IN_US = 30_000_000
_WHILE_TOPICS_ARE_MADE = frozenset({3, 5, 14, 15, 16})
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, and that a coordinator is loading, not available, or elsewhere."""


def _in_an_old_cluster(parts: dict[str, pa.Table], times: dict[str, Micros]) -> None:
    """Leave out what a new cluster refuses while it makes its own topics, in the first half minute."""
    rows = parts["exchanges"]
    early = times["exchanges"] < times["exchanges"].min() + _MADE_IN_US
    refused = [not _WHILE_TOPICS_ARE_MADE.isdisjoint(codes or ()) for codes in rows.column("error_codes").to_pylist()]
    young = rows.column("exchange_id").filter(pa.array(early & np.array(refused)))
    for name in ("exchanges", "events", "batches", "states"):
        kept = pc.invert(pc.is_in(parts[name].column("exchange_id"), young.combine_chunks()))
        parts[name], times[name] = parts[name].filter(kept).combine_chunks(), times[name][kept.to_numpy()]


def _in_order(rows: pa.Table) -> tuple[pa.Table, Micros]:
    us = rows.column("ts").cast(pa.int64())
    if "response_ts" in rows.column_names:
        us = pc.coalesce(rows.column("response_ts").cast(pa.int64()), us)
    order = pc.array_sort_indices(us)
    return rows.take(order).combine_chunks(), us.take(order).to_numpy().astype(np.int64)


_Key = tuple[object, ...]


def _most(rows: pa.Table, by: Iterable[str], of: Iterable[str]) -> dict[_Key, int]:
    """By values of some columns the highest value of others, 0 at least."""
    found: dict[_Key, int] = {}
    columns = [rows.column(name).to_pylist() for name in by]
    for name in of:
        for *key, value in zip(*columns, rows.column(name).to_pylist(), strict=True):
            found[tuple(key)] = max(found.get(tuple(key), 0), value or 0)
    return found


def _looked_up(rows: pa.Table, by: Iterable[str], values: dict[_Key, int]) -> Micros:
    keys = zip(*(rows.column(name).to_pylist() for name in by), strict=True)
    return np.array([values.get(key, 0) for key in keys], dtype=np.int64)
