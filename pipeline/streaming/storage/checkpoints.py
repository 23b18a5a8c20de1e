"""A checkpoint that is gone or unusable: its query begins from the start, and no row comes twice.

* ``frames`` and ``gaps`` read the whole landing zone again: bronze takes in only keys that it does not hold.
* ``exchanges`` reads all of bronze again: silver of the days that bronze still holds is emptied before. Days whose
  frames have expired stay.
* ``gold`` is notified that all of silver is new: each table is replaced from the first day on.

A checkpoint that Spark could not continue from (cut off by a full disk, restored by half) is put aside, not repaired:
its batch numbers would make Delta believe that rows are written already which are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.storage.change_log import note_all
from pipeline.streaming.storage.lake import Lake, frames_kept_from, holds, read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import delete_rows, overwrite
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    DUPLICATE_FLOWS,
    EXCHANGES,
    FRAMES,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    STREAM_PROGRESS,
    Table,
)

QUERIES = ("frames", "gaps", "exchanges", "gold")
OF_EXCHANGES = (EXCHANGES, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, MONGO_HANDSHAKES, MONGO_COMMANDS)
"""What the query ``exchanges`` appends to."""
_LOGS = ("offsets", "commits", "sources/*")


def renew_checkpoints(spark: SparkSession, lake: Lake, progress: Callable[[str], None]) -> None:
    """Put checkpoints aside that cannot be used, and make ready for queries that start over. The lock must be held.

    On an object store only what is missing is noticed; of a checkpoint that is damaged there Spark itself reports.
    """
    if lake.is_local:
        begun = [query for query in QUERIES if Path(lake.checkpoint(query)).exists()]
        done = _batches_done(spark, lake) if begun else {}
        for query in begun:
            if (fault := fault_of(Path(lake.checkpoint(query)), done)) is not None:
                aside = _put_aside(Path(lake.checkpoint(query)))
                progress(f"{query}: {fault}; its checkpoint is now {aside}, the query starts over")
    if not _has_begun(spark, lake, "exchanges"):
        empty_silver(spark, lake, progress)
    if not _has_begun(spark, lake, "gold"):
        note_all(LakeIO(spark, lake))


def _batches_done(spark: SparkSession, lake: Lake) -> dict[str, int]:
    """The last batch of each checkpoint, by its id, as the lake itself has noted it."""
    last = "SELECT checkpoint, max(batch_id) AS last FROM rows GROUP BY checkpoint"
    return {row.checkpoint: row.last for row in LakeIO(spark, lake).ask(TableScan(STREAM_PROGRESS), last)}


def fault_of(checkpoint: Path, done: Mapping[str, int]) -> str | None:
    """Why a checkpoint cannot be used; None: it can, or it is not there.

    Args:
        checkpoint: its folder.
        done: the last batch that the lake knows of, by the checkpoint's id; a checkpoint from a backup is behind it.

    Its files are a line with the version and lines of JSON, or ``-`` for nothing; a name that begins with a dot is a
    checksum or one being written.
    """
    logs = [path for pattern in _LOGS for path in sorted(checkpoint.glob(f"{pattern}/*")) if path.name[0] != "."]
    metadata = checkpoint / "metadata"
    if not metadata.exists():
        return "the file `metadata` is missing" if logs else None
    text = metadata.read_text(encoding="utf-8", errors="replace")
    if not _is_json(text):
        return "the file `metadata` is damaged"
    for path in logs:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) < (1 if path.parent.parent.name == "sources" else 2) or not lines[0].startswith("v"):
            return f"`{path.relative_to(checkpoint)}` is cut off"
        if not all(line == "-" or line.isdigit() or _is_json(line) for line in lines[1:]):
            return f"`{path.relative_to(checkpoint)}` is damaged"
    last = max(_last(checkpoint, "commits"), done.get(json.loads(text).get("id"), -1))
    planned = _last(checkpoint, "offsets")
    return f"it ends with batch {planned}, but batch {last} was done" if last > planned else None


def has_read_all(lake: Lake, query: str, table: Table) -> bool:
    """Whether a query that reads one table has done all that is in it, for certain: starting it would take seconds.

    The last line of what it planned last is Delta's: from which table (``reservoirId``) it reads which version next.
    """
    checkpoint = Path(lake.checkpoint(query))
    if not lake.is_local or not checkpoint.is_dir():
        return False
    if not has_ended_batches(lake, query):
        return False
    planned = _last(checkpoint, "offsets")
    try:
        offset = json.loads((checkpoint / "offsets" / str(planned)).read_text(encoding="utf-8").splitlines()[-1])
        held = DeltaTable(lake.path(table))
        is_its = offset["reservoirId"] == held.metadata().id
        return bool(is_its and offset["index"] == -1 and offset["reservoirVersion"] > held.version())
    except (OSError, ValueError, KeyError, TypeError, IndexError, DeltaError):
        return False


def has_ended_batches(lake: Lake, query: str) -> bool:
    """Whether a query has begun no batch that it has not ended, of a lake on this machine."""
    checkpoint = Path(lake.checkpoint(query))
    planned = _last(checkpoint, "offsets") if lake.is_local else -1
    return planned >= 0 and planned == _last(checkpoint, "commits")


def _last(checkpoint: Path, log: str) -> int:
    """Number of the newest batch in one of a checkpoint's logs; -1 without any."""
    return max((int(path.name) for path in (checkpoint / log).glob("[0-9]*")), default=-1)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _put_aside(checkpoint: Path) -> Path:
    number = 1
    while (aside := checkpoint.with_name(f"{checkpoint.name}.unusable-{number}")).exists():
        number += 1
    return checkpoint.rename(aside)


def _has_begun(spark: SparkSession, lake: Lake, query: str) -> bool:
    """Whether a query has a checkpoint."""
    if lake.is_local:
        return Path(lake.checkpoint(query), "metadata").exists()
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(f"{lake.checkpoint(query)}/metadata")
    return bool(path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path))


def empty_silver(spark: SparkSession, lake: Lake, progress: Callable[[str], None]) -> None:
    """Delete from silver what will be derived from the frames that bronze holds. Repeating it changes nothing."""
    kept_from = frames_kept_from(spark, lake)
    again = F.lit(True) if kept_from is None else F.col("date") >= F.lit(kept_from)
    # Maintenance may have been cut off before it had deleted these: they would be read again.
    delete_rows(spark, lake, FRAMES, ~again)
    for table in (*OF_EXCHANGES, DUPLICATE_FLOWS):
        if delete_rows(spark, lake, table, again):
            progress(f"exchanges: {table.full_name} is rebuilt" + f" from {kept_from} on" * bool(kept_from))
    if holds(spark, lake, PENDING_EXCHANGES, again):
        overwrite(read_table(spark, lake, PENDING_EXCHANGES).where(~again), lake, PENDING_EXCHANGES)
