"""``ops.internal_errors``: steps that failed in a batch.

A failing step costs itself alone (:mod:`pipeline.analysis.safety.guard`): its batch is committed without it, and is not
repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.analysis.safety.guard import Noted, errors_table, noting
from pipeline.streaming.spark.failures import taken_failures
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import INTERNAL_ERRORS


@contextmanager
def noting_steps(rows: LakeIO, query: str, batch: Batch | None) -> Iterator[Noted]:
    """Contain failures within the block, those of workers included, and write them into the lake at its end.

    Args:
        rows: of the lake.
        query: name of the query, or of the command, that works within the block.
        batch: its batch; None: outside of a stream.
    """
    with noting() as noted:
        yield noted
    noted.add(taken_failures(rows.spark))
    if not noted.errors:
        return
    number, checkpoint = (batch.number, batch.checkpoint_id) if batch is not None else (-1, "")
    table = errors_table(noted.errors, query, time.time_ns() // 1000, number, checkpoint)
    if batch is None:
        rows.append(table, INTERNAL_ERRORS)
    else:
        rows.note(table, INTERNAL_ERRORS, batch)
