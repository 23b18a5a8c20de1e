"""Exchanges of the lake as rules read them: with the bodies that a rule reads, and an empty object for all others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeline.analysis.rules.bodies_read import may_be_read_sql, with_empty_bodies, without_bodies
from pipeline.analysis.rules.kafka.exchange_symptoms import SymptomThresholds
from pipeline.analysis.tables import Tables
from pipeline.streaming.silver.bodies import AT_ONCE, exchanges_with_bodies
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan

_OTHERS = "SELECT * FROM exchanges WHERE NOT {}"


def rule_exchanges(
    rows: LakeIO, wanted: TableScan, settings: SymptomThresholds, held: pa.Table | None = None
) -> Iterator[pa.Table]:
    """Some at a time, in no order; few of them need their frames.

    Args:
        rows: of the lake.
        wanted: rows of ``silver.exchanges``.
        settings: the latency that is a symptom.
        held: the same rows, where they are in memory already.
    """
    asked = may_be_read_sql(settings)
    for some in exchanges_with_bodies(rows, wanted, held, asked):
        yield without_bodies(some, settings)
    if not rows.lake.is_local:
        return
    tables = Tables({"exchanges": rows.scan(wanted) if held is None else held})
    try:
        for batch in tables.reader(_OTHERS.format(asked), AT_ONCE):
            yield with_empty_bodies(pa.table(batch))
    finally:
        tables.close()
