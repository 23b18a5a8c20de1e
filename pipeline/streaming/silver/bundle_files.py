"""Bundles as files: whoever derives rows of silver writes them, and notes what else the driver has to know of them.

A file is a line of text and numbers, a note a table in Arrow's form: both come back from a task of Spark's as rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import astuple
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator

from pipeline.analysis.bundle import DERIVED, Bundle, bundle_of, paired_certainly
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.fit import schema_of
from pipeline.analysis.pairing import newest
from pipeline.config.settings import StreamSettings
from pipeline.streaming.silver.exchanges import CLOCKS
from pipeline.streaming.silver.stated import NAMED_AT_MOST, facts_table
from pipeline.streaming.spark.failures import Failures, noting_in_worker
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.new_files import in_pieces
from pipeline.streaming.storage.table_files import TableFile, TableWriter
from pipeline.streaming.storage.worker_files import LINE, Written
from pipeline.tables import EXCHANGES, OFFSET_EVENTS, PENDING_EXCHANGES, Table

WRITTEN = (*DERIVED, PENDING_EXCHANGES)
"""Tables in whose folders files are written; those of the last are for the driver, and never committed."""
OUTPUT = f"about string, {LINE}, noted binary"
"""Of a file the table and its line; of a note its name and the table."""
_NO_FILE = (None,) * 6
_MOST_LEFT = 50_000
"""Halves that a task takes on from piece to piece."""

Lines = Sequence[tuple[Any, ...]]


class BundleWriter:
    """Writes bundles; a context: where an error ends it, its files go.

    Args:
        lake: whose tables they are.
        known: the names that the bundles were made by.
    """

    def __init__(self, lake: Lake, known: ClusterCatalog) -> None:
        self._known = known
        self._open = ExitStack()
        self._writers = {
            table.full_name: self._open.enter_context(TableWriter(lake.path(table), table)) for table in WRITTEN
        }
        self._lines: list[tuple[Any, ...]] = []
        self._facts: dict[Fact, None] = {}
        self._unnamed: set[str] = set()
        self._servers: set[str] = set()
        self._subscriptions: list[pa.Table] = []
        self._first_us: list[int] = []

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def add(self, bundle: Bundle) -> None:
        """Take a bundle."""
        for name, rows in bundle.rows.items():
            if rows.num_rows:
                self._take(name, self._writers[name].add(rows))
        times = bundle.rows[EXCHANGES.full_name].column("ts").cast(pa.int64())
        self._first_us += [pc.min(times).as_py()] if len(times) else []
        self._facts.update(dict.fromkeys(bundle.facts))
        events, members = bundle.rows[OFFSET_EVENTS.full_name], bundle.subscriptions
        is_unnamed = pc.and_(pc.is_null(events.column("topic")), pc.is_valid(events.column("topic_id")))
        self._unnamed.update(pc.unique(events.column("topic_id").filter(is_unnamed)).to_pylist())
        self._servers.update(pc.unique(events.column("server")).to_pylist())
        if members.num_rows:
            self._servers.update(pc.unique(members.column("server")).to_pylist())
            self._unnamed.update(pc.unique(pc.list_flatten(members.column("topic_ids"))).to_pylist())
            if sum(some.num_rows for some in self._subscriptions) < NAMED_AT_MOST:
                self._subscriptions.append(members)

    def keep(self, left: pa.Table) -> None:
        """Take halves that the driver shall pair."""
        if left.num_rows:
            self._take(PENDING_EXCHANGES.full_name, self._writers[PENDING_EXCHANGES.full_name].add(left))

    def note(self, name: str, rows: pa.Table) -> None:
        """Note a table."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        self._lines.append((name, *_NO_FILE, sink.getvalue().to_pybytes()))

    def close(self) -> Lines:
        """All files and notes."""
        for name, writer in self._writers.items():
            self._take(name, writer.close())
        self.note("facts", facts_table(self._facts))
        unnamed = sorted(self._unnamed - self._known.names.keys())
        self.note("unnamed", pa.table({"topic_id": pa.array(unnamed, pa.string())}))
        servers = sorted(one for one in self._servers if not self._known.spans_of(one))
        self.note("servers", pa.table({"server": pa.array(servers, pa.string())}))
        self.note("first_us", pa.table({"us": pa.array(self._first_us, pa.int64())}))
        if self._subscriptions and (unnamed or servers):
            self.note("subscriptions", pa.concat_tables(self._subscriptions))
        return self._lines

    def _take(self, name: str, files: Sequence[TableFile]) -> None:
        self._lines += ((name, *astuple(one), None) for one in files)


class BundleFiles:
    """What :class:`BundleWriter` gave, of one or several."""

    def __init__(self, lake: Lake, lines: Lines) -> None:
        self._lake, self._lines = lake, lines

    def written(self, table: Table) -> Written:
        """The files of a table."""
        files = (TableFile(*line[1:-1]) for line in self._lines if line[0] == table.full_name)
        return Written(self._lake, table, tuple(files))

    def noted(self, name: str) -> pa.Table | None:
        """What was noted by that name; None: nothing."""
        found = [
            pa.ipc.open_stream(pa.py_buffer(noted)).read_all()
            for about, *_, noted in self._lines
            if about == name and noted is not None
        ]
        return pa.concat_tables(found, promote_options="default") if found else None


def derived(
    groups: Sequence[Sequence[str]],
    lake: Lake,
    known: ClusterCatalog,
    settings: StreamSettings,
    failures: Accumulator[Failures],
    number: int,
) -> Lines:
    """What a task finds in files of ``bronze.frames``, and has written.

    Args:
        groups: of each task the files.
        lake: whose they are.
        known: clusters and topic names.
        settings: how long halves wait.
        failures: where failures of steps are noted.
        number: of the task.
    """
    left = schema_of(PENDING_EXCHANGES).empty_table()
    clocks = left.select(CLOCKS)
    with BundleWriter(lake, known) as writing:
        for frames in in_pieces(groups[number], PENDING_EXCHANGES):
            clocks = newest(frames.select(CLOCKS), clocks, -1)
            with noting_in_worker(failures):
                complete, left = paired_certainly(pa.concat_tables([left, frames]), settings)
                bundle = bundle_of(complete, known)
            writing.add(bundle)
            if left.num_rows > _MOST_LEFT:
                writing.keep(left)
                left = left.slice(0, 0)
        writing.keep(left)
        writing.note("clocks", clocks)
        return writing.close()
