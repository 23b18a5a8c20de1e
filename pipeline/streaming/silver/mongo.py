"""What MongoDB exchanges state, written: ``silver.mongo_handshakes`` and ``silver.mongo_commands``.

A client states its name in the first message of a connection only. Commands get it from the table of handshakes, and
those that were written before their handshake get it later: the rows do not depend on how the stream was cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import COMMANDS, News, news_of, together
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.statements.exchanges import renamed, with_handshakes
from pipeline.analysis.statements.mongodb import FROM_HANDSHAKE, REMEMBERED_DAYS
from pipeline.streaming.silver.stated import Stated
from pipeline.streaming.spark.bundles import map_tables
from pipeline.streaming.storage.lake import struct_type
from pipeline.streaming.storage.lake_io import Appended, LakeIO, Made
from pipeline.streaming.storage.new_files import with_date
from pipeline.streaming.storage.sinks import Batch, day_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.streaming.storage.worker_files import Written, rewritten
from pipeline.tables import MONGO_COMMANDS, MONGO_HANDSHAKES

_NAMES = ("connection_id", "date", "ts", "exchange_id", *FROM_HANDSHAKE)
_STEP = f"table {MONGO_COMMANDS.full_name}"


def write_commands(rows: LakeIO, stated: Stated, batch: Batch) -> News:
    """Append what a batch of completed exchanges states, and name earlier commands whose handshake it brings.

    Repeating it after a crash gives the same rows.

    Returns:
        What is new, as far as that is known of rows that are in memory.
    """
    if stated.commands is None:
        return {}
    if stated.handshakes is not None:
        rows.append(stated.handshakes, MONGO_HANDSHAKES, batch)
    named = named_commands(rows, stated.commands)
    rows.append(named, MONGO_COMMANDS, batch)
    news = news_of(MONGO_COMMANDS, named) if isinstance(named, pa.Table) else {}
    return together(news, {} if stated.handshakes is None else _name_earlier(rows, stated.handshakes))


def named_commands(rows: LakeIO, commands: Appended) -> Appended:
    """Rows of ``silver.mongo_commands`` with what ``silver.mongo_handshakes`` states of their connections."""
    if isinstance(commands, Written):
        those = handshakes_of(rows, with_date(commands.read(("connection_id", "ts"))))
        return rewritten(rows.spark, commands, partial(_named, those)) if those.num_rows else commands
    known = handshakes_of(rows, commands)
    if isinstance(commands, pa.Table):
        return _named(known, commands)
    return map_tables(commands, partial(_named, known), struct_type(MONGO_COMMANDS.columns), _STEP)


def _named(known: pa.Table, some: pa.Table) -> pa.Table:
    return attempt(_STEP, lambda: with_handshakes(some, known), lambda: some)


def handshakes_of(rows: LakeIO, statements: Made) -> pa.Table:
    """The handshakes of the connections of some rows, as far back as they are remembered."""
    if rows.is_empty(MONGO_HANDSHAKES):
        return rows.read(TableScan(MONGO_HANDSHAKES)).slice(0, 0)
    if isinstance(statements, DataFrame):
        first = statements.agg(F.min("date")).collect()[0][0]
        held = rows.frame(TableScan(MONGO_HANDSHAKES, from_day=first - timedelta(days=REMEMBERED_DAYS), columns=_NAMES))
        return held.join(statements.select("connection_id").distinct(), "connection_id", "left_semi").toArrow()
    first = pc.min(statements.column("date")).as_py()
    held = rows.read(TableScan(MONGO_HANDSHAKES, from_day=first - timedelta(days=REMEMBERED_DAYS), columns=_NAMES))
    return held.filter(pc.is_in(held.column("connection_id"), pc.unique(statements.column("connection_id"))))


def _name_earlier(rows: LakeIO, handshakes: Made) -> News:
    """Give commands what their handshake states, if it landed after them.

    Args:
        rows: of the lake.
        handshakes: those that are new; their commands came later.
    """
    since_us = _first_us(handshakes)
    known = handshakes_of(rows, handshakes)
    wanted = TableScan.since(MONGO_COMMANDS, since_us)

    def rename(tables: Mapping[str, pa.Table]) -> pa.Table:
        commands = tables["commands"]
        return attempt(_STEP, lambda: renamed(commands, known), lambda: commands.slice(0, 0))

    changed = rows.derive(rename, {"commands": wanted}, ("connection_id",), MONGO_COMMANDS)
    rows.merge(changed, MONGO_COMMANDS, "t.exchange_id = s.exchange_id", {"date": (day_of(since_us), date(2262, 1, 1))})
    return {COMMANDS: (1, since_us)}


def _first_us(rows: Made) -> int:
    if isinstance(rows, pa.Table):
        return int(pc.min(rows.column("ts").cast(pa.int64())).as_py())
    return int(rows.agg(F.unix_micros(F.min("ts"))).collect()[0][0])
