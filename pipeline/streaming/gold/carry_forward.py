"""How does each event get what was known at that moment? One sort of all that matters to a partition, then one pass.

A Spark task goes through its topic partitions one after the other: what was produced, transaction markers, what was
known before, then the events in the order of time. It keeps what :mod:`pipeline.analysis.timeline.carry` keeps of
one partition, however many events there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.timeline.carry import EVENT, KNOWN, MARKER, ORDER, PARTITION, PRODUCED
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import OFFSET_TIMELINE

if TYPE_CHECKING:
    import pyarrow as pa


def carry_forward(
    rows: DataFrame, known: DataFrame, produced: DataFrame, markers: DataFrame, lookback: timedelta
) -> DataFrame:
    """Rows of ``gold.offset_timeline``.

    Args:
        rows: events of whole hours with the values that they state themselves, in the columns of the timeline, and
            ``event_ordinal``.
        known: what was known before the first of them: rows of ``gold.offsets_before``.
        produced: see :func:`pipeline.streaming.storage.log_past.produced_above`.
        markers: see :func:`pipeline.streaming.storage.log_past.markers_above`.
        lookback: records produced, and markers seen, earlier than this are not looked up.
    """
    parts = ((rows, EVENT), (known, KNOWN), (produced, PRODUCED), (markers, MARKER))
    both = reduce(
        lambda some, more: some.unionByName(more, allowMissingColumns=True),
        (part.withColumn("what", F.lit(what)) for part, what in parts),
    )
    ordered = both.repartition(*PARTITION).sortWithinPartitions(*ORDER)
    return ordered.mapInArrow(_carrier(lookback), struct_type(OFFSET_TIMELINE.columns))


def _carrier(lookback: timedelta) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def carry(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline.analysis.timeline.carry import Pass  # noqa: PLC0415 - on the worker only

        pass_ = Pass(lookback)
        for batch in batches:
            yield pass_.timeline(batch)

    return carry
