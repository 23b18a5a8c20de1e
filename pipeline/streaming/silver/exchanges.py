"""Brings the halves of an exchange together by ``exchange_id``; those that wait are in a table.

A batch of frames is taken together with ``silver.pending_exchanges``. What is complete (or given up) becomes rows of
``silver.exchanges``; the rest is the next content of ``silver.pending_exchanges``. Who belongs together, and when a
half is given up, is :mod:`pipeline.analysis.pairing`'s to say: by event time only, so that the same frames give the
same rows however the stream was cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.pairing import HALF, completed, exchanges, halves_of, newest, pending, with_halves
from pipeline.config.settings import StreamSettings
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.tables import EXCHANGES_WITH_BODIES, FRAME_ID_SQL, PENDING_EXCHANGES, Column

HALF_COLUMNS = PENDING_EXCHANGES.column_names
CLOCKS = ["connection_id", "direction", "seq", "ts", "flags"]
"""What :func:`pipeline.analysis.pairing.newest` reads."""
_CLOCKS = tuple(column for column in PENDING_EXCHANGES.columns if column.name in CLOCKS)
_PAIRED = (
    *EXCHANGES_WITH_BODIES.columns,
    *(Column(f"{HALF}{column.name}", column.type, "") for column in PENDING_EXCHANGES.columns),
)


def pair_here(halves: pa.Table, settings: StreamSettings, clocks: pa.Table | None = None) -> tuple[pa.Table, pa.Table]:
    """Completed exchanges with their bodies, and the halves that still wait.

    Args:
        halves: with the columns of ``silver.pending_exchanges``.
        settings: how long halves wait.
        clocks: further frames whose time counts.
    """
    paired = exchanges(halves, settings.response_timeout, settings.abandon_timeout, clocks)
    return completed(paired), halves_of(pending(paired), halves)


def pair_apart(rows: LakeIO, halves: DataFrame, frames: DataFrame, settings: StreamSettings) -> DataFrame:
    """The same by Spark's workers. To be persisted where it is read more than once.

    Args:
        rows: of the lake.
        halves: with the columns of ``silver.pending_exchanges``.
        frames: all frames whose time counts.
        settings: how long halves wait.
    """

    def last(tables: Mapping[str, pa.Table]) -> pa.Table:
        return newest(tables["frames"], tables["frames"].slice(0, 0), -1)

    clocks = rows.derive_in_spark(last, {"frames": frames.select(*CLOCKS)}, ("connection_id",), _CLOCKS).toArrow()

    def pair(tables: Mapping[str, pa.Table]) -> pa.Table:
        some = tables["halves"]
        paired = exchanges(some, settings.response_timeout, settings.abandon_timeout, tables["clocks"])
        return with_halves(paired, some)

    return rows.derive_in_spark(
        pair, {"halves": halves.select(*HALF_COLUMNS)}, (FRAME_ID_SQL,), _PAIRED, {"clocks": clocks}
    )


def complete_of(paired: DataFrame) -> DataFrame:
    """Completed exchanges with their bodies."""
    return paired.where("status <> 'pending'").select(*EXCHANGES_WITH_BODIES.column_names)


def waiting_of(paired: DataFrame) -> DataFrame:
    """The halves that still wait."""
    halves = (F.col(f"{HALF}{name}").alias(name) for name in HALF_COLUMNS)
    return paired.where("status = 'pending'").select(*halves)
