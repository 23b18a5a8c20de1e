"""Record batches as bodies list them: what both Produce and Fetch state of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools, Ints
from decoder.kernel.leaves import Level, Rows
from pipeline.analysis.columns.nullable import Numbers, at_places, chosen, text_array, truths
from pipeline.analysis.statements.partitions import Listed, Topics, flags, numbers

RECORD_BATCHES = Level(
    "recordBatches",
    integers=(
        "baseOffset", "lastOffset", "recordsCount", "sizeInBytes", "magic", "baseTimestamp", "maxTimestamp",
        "producerId", "producerEpoch", "baseSequence",
    ),
    texts=("status", "compressionType", "timestampType", "controlType"),
    flags=("isTransactional", "isControlBatch", "crcValid"),
)  # fmt: skip
"""See :func:`decoder.kafka.extractors.exchanges.record_batch_rows`."""


@dataclass(frozen=True, slots=True)
class BatchesOf:
    """The record batches of partitions.

    Attributes:
        listed: the partitions.
        rows: the batches, as the body has them.
        owners: of each batch the place of its partition in ``listed``, which ascends; -1: it is left out.
        status: of each batch; null for none.
    """

    listed: Listed
    rows: Rows
    owners: Ints
    status: pa.Array

    @classmethod
    def of(cls, listed: Listed, partitions: Rows, rows: Rows) -> BatchesOf:
        """Those of partitions that are ``listed``."""
        places = np.full(len(partitions), -1, np.int64)
        places[listed.rows] = np.arange(len(listed.rows))
        return cls(listed, rows, places[rows.parents], text_array(rows.text("status")))

    def status_is(self, status: str) -> Bools:
        """Where ``status`` has a value."""
        return truths(pc.equal(self.status, status))

    def has_status(self) -> Bools:
        """Where there is a ``status``."""
        return truths(self.status.is_valid())

    def sums(self, values: Numbers, counted: Bools) -> Numbers:
        """By partition the sum over those that are counted; not known where one of them is not."""
        count = len(self.listed.rows)
        here = counted & (self.owners >= 0)
        owners = self.owners[here]
        totals = np.zeros(count, np.int64)
        np.add.at(totals, owners, values.values[here])
        unknown = np.zeros(count, np.bool_)
        unknown[owners[~values.known[here]]] = True
        return Numbers(totals, ~unknown)

    def last(self, counted: Bools) -> Ints:
        """By partition the last batch of those that are counted, -1 without one."""
        found = np.full(len(self.listed.rows), -1, np.int64)
        here = np.flatnonzero(counted & (self.owners >= 0))
        found[self.owners[here]] = here
        return found

    @property
    def spans(self) -> Numbers:
        """How many offsets each takes, see :func:`decoder.kafka.extractors.offsets.offset_span`."""
        first, last = numbers(self.rows, "baseOffset").natural, numbers(self.rows, "lastOffset").natural
        count = numbers(self.rows, "recordsCount").count
        by_offsets = numbers(self.rows, "magic").equal(2) & first.known & last.known
        return Numbers(
            np.where(by_offsets, last.values - first.values + 1, count.values),
            np.where(by_offsets, first.values <= last.values, count.known),
        )

    def columns(self, source: str, topics: Topics, first: Numbers, last: Numbers) -> tuple[Ints, dict[str, pa.Array]]:
        """Columns of ``silver.record_batches`` without the exchange's, and of each row the exchange's number.

        Args:
            source: ``produce`` or ``fetch``.
            topics: what the partitions' topics are.
            first, last: offsets of each batch.
        """
        kept = np.flatnonzero((self.owners >= 0) & ~self.status_is("removed"))  # which stands for any number of batches
        owners = self.owners[kept]
        begins = np.searchsorted(self.owners[self.owners >= 0], np.arange(len(self.listed.rows)))
        positions = np.cumsum(self.owners >= 0) - 1
        int32, int64, truth = pa.int32(), pa.int64(), pa.bool_()

        def number(name: str, kind: pa.DataType) -> pa.Array:
            return numbers(self.rows, name).at(kept).arrow(kind)

        def text(name: str) -> pa.Array:
            return at_places(text_array(self.rows.text(name)), kept)

        places = self.listed.topics[owners]
        return self.listed.exchanges[owners], {
            "topic": at_places(topics.names, places),
            "topic_id": at_places(topics.ids, places),
            "partition": Numbers.all_known(self.listed.partitions[owners]).arrow(int32),
            "source": chosen([source], np.zeros(len(kept), np.int64)),
            "ordinal": Numbers.all_known(positions[kept] - begins[owners]).arrow(int32),
            "base_offset": first.at(kept).arrow(int64),
            "last_offset": last.at(kept).arrow(int64),
            "records": numbers(self.rows, "recordsCount").count.at(kept).arrow(int32),
            "size": numbers(self.rows, "sizeInBytes").count.at(kept).arrow(int32),
            "magic": number("magic", int32),
            "compression": text("compressionType"),
            "timestamp_type": text("timestampType"),
            "base_timestamp": number("baseTimestamp", int64),
            "max_timestamp": number("maxTimestamp", int64),
            "producer_id": number("producerId", int64),
            "producer_epoch": number("producerEpoch", int32),
            "base_sequence": number("baseSequence", int32),
            "is_transactional": flags(self.rows, "isTransactional").at(kept).arrow(truth),
            "is_control": flags(self.rows, "isControlBatch").at(kept).arrow(truth),
            "control_type": text("controlType"),
            "crc_valid": flags(self.rows, "crcValid").at(kept).arrow(truth),
        }
