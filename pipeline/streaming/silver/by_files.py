"""What new files of ``bronze.frames`` hold: Spark's workers read them, and write silver where they find it.

A task takes whole files in their order. Bodies are read from where they are, and rows are written by whoever has
derived them; a line for each file comes back. Halves that are alone wait in files of their own for the driver, which
pairs what several tasks have, and what waited before: these are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.bundle import bundle_of
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.fit import schema_of
from pipeline.analysis.inferred import with_inferred
from pipeline.analysis.safety.guard import attempt
from pipeline.analysis.statements.exchanges import TABLES, KafkaStatements, placed
from pipeline.config.settings import StreamSettings
from pipeline.streaming.silver.bundle_files import (
    OUTPUT,
    WRITTEN,
    BundleFiles,
    BundleWriter,
    derived,
)
from pipeline.streaming.silver.exchanges import pair_here
from pipeline.streaming.silver.stated import NAMED_AT_MOST, STEP, Stated
from pipeline.streaming.spark.failures import failures_of
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import FEW_BYTES, FEW_ROWS, LakeIO
from pipeline.streaming.storage.new_files import NewFile, paths_here
from pipeline.streaming.storage.worker_files import Written, groups_of, in_tasks, rewritten
from pipeline.streaming.storage.written_here import takes_files
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, MONGO_HANDSHAKES, OFFSET_EVENTS, PENDING_EXCHANGES, Table


@dataclass(frozen=True, slots=True)
class Found:
    """What a batch holds, in uncommitted files.

    Attributes:
        complete: rows of ``silver.exchanges``.
        first_us: time of the first of them, µs since the epoch; None without any.
        stated: what they state.
        still: halves that wait.
    """

    complete: Written
    first_us: int | None
    stated: Stated
    still: pa.Table


def writes_files(lake: Lake) -> bool:
    """Whether workers may write the tables of such a lake."""
    return all(takes_files(lake, table) for table in WRITTEN)


def find_by_files(
    rows: LakeIO, files: Sequence[NewFile], waiting: pa.Table, known: ClusterCatalog, settings: StreamSettings
) -> Found | None:
    """What new files and the halves that waited hold; None: there is too much that the driver would have to pair.

    Args:
        rows: of the lake.
        files: of ``bronze.frames``.
        waiting: rows of ``silver.pending_exchanges``.
        known: clusters and topic names.
        settings: how long halves wait.
    """
    lines = _by_tasks(rows, files, known, settings)
    by_tasks = BundleFiles(rows.lake, lines)
    left, handshakes = by_tasks.written(PENDING_EXCHANGES), by_tasks.written(MONGO_HANDSHAKES)
    if max(left.rows, handshakes.rows) > FEW_ROWS or left.size > FEW_BYTES:
        for table in WRITTEN:
            by_tasks.written(table).remove()
        return None
    halves = pa.concat_tables([left.read(), waiting])
    complete, still = pair_here(halves, settings, by_tasks.noted("clocks"))
    with BundleWriter(rows.lake, known) as writing:
        writing.add(bundle_of(complete, known))
        both = BundleFiles(rows.lake, [*lines, *writing.close()])
    handshakes = both.written(MONGO_HANDSHAKES)
    times = both.noted("first_us")
    found = Found(
        both.written(EXCHANGES),
        None if times is None else pc.min(times.column("us")).as_py(),
        _stated(rows, both, known, handshakes.read() if handshakes.files else None),
        still,
    )
    for spent in (left, handshakes):
        spent.remove()
    return found


def _by_tasks(
    rows: LakeIO, files: Sequence[NewFile], known: ClusterCatalog, settings: StreamSettings
) -> list[tuple[object, ...]]:
    paths = paths_here(files)
    # One for each core: more would divide more pairs.
    groups = [
        [paths[number] for number in group]
        for group in groups_of((one.rows for one in files), rows.spark.sparkContext.defaultParallelism)
    ]
    work = partial(derived, groups, rows.lake, known, settings, failures_of(rows.spark))
    return [tuple(line) for line in in_tasks(rows.spark, len(groups), work, OUTPUT)]


def _stated(rows: LakeIO, both: BundleFiles, known: ClusterCatalog, handshakes: pa.Table | None) -> Stated:
    noted = both.noted("facts")
    facts = [] if noted is None else [Fact(*row.values()) for row in noted.to_pylist()]
    commands = both.written(MONGO_COMMANDS)

    def events(now: ClusterCatalog) -> list[tuple[Table, Written]]:
        written = [(table, some) for table in TABLES.values() if (some := both.written(table)).files]
        if not now.servers_changed(known) and not now.names_learned(known):
            return written
        return [(table, rewritten(rows.spark, some, partial(_placed, now))) for table, some in written]

    return Stated(
        lambda before: _with_inferred(before.merged(facts) if facts else before, both),
        events,
        commands if commands.files else None,
        handshakes,
    )


def _placed(catalog: ClusterCatalog, some: pa.Table) -> pa.Table:
    return attempt(STEP, partial(placed, some, catalog), lambda: some)


def _with_inferred(known: ClusterCatalog, both: BundleFiles) -> ClusterCatalog:
    """This catalog, with the clusters and names that the first of many statements show."""
    unnamed, servers, subscriptions = (both.noted(name) for name in ("unnamed", "servers", "subscriptions"))
    new_ids = set() if unnamed is None else set(unnamed.column("topic_id").to_pylist()) - known.names.keys()
    homeless = servers is not None and any(not known.spans_of(one) for one in servers.column("server").to_pylist())
    if not new_ids and not homeless:
        return known
    written = both.written(OFFSET_EVENTS)
    events = written.read(most=NAMED_AT_MOST) if written.files else schema_of(OFFSET_EVENTS).empty_table()
    members = KafkaStatements({}).subscriptions() if subscriptions is None else subscriptions
    return with_inferred(known, placed(events, known), members)
