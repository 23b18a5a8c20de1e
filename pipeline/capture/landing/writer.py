"""Writes frames to the landing zone so that no reader sees half a file, and nothing is lost while it is away.

Rows are gathered here and written by a thread of their own, one batch at a time and in their order: whoever adds rows
continues meanwhile, and waits when the next batch is full as well. So the memory stays bounded while the store is full
or out of reach. (DESIGN: landing zone.)
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa

from decoder.model import Frame, Gap
from pipeline.capture.landing.files import FRAMES, Batch, LandingFile, frame_ends
from pipeline.capture.landing.patience import DEFAULT_STORE_TIMEOUT_S, PatientStore
from pipeline.capture.landing.stores import LandingError, Store
from pipeline.lake.arrow import with_optional
from pipeline.tables import LANDING_COLUMNS

DEFAULT_MAX_AGE_S = 10.0

_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Published:
    """Landing files by relative path: written now, or found with the same content."""

    new: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)


class LandingWriter:
    """Writes rows into the landing zone, as a context.

    Files become visible one after the other, as soon as enough rows are there for the next; :meth:`publish` writes the
    rest, and what has come after it is dropped when the context is left. Without ``max_age_s`` names and content follow
    from the rows alone, so reading the same capture again finds its files already there. A file of the same name with
    other content (the same capture under another payload policy) is not touched: the new one takes the next free
    number.

    Args:
        store: where the files go.
        agent_id: name of the agent, part of the files' names.
        max_age_s: rows are written at the latest this many seconds (of the wall clock) after they came; None: when
            there are enough of them.
        store_timeout_s: how long in seconds a store that fails is tried again before the writer gives up.
        are_read_once: whether the files go after they were read: they take less time and more space.

    Raises:
        LandingError: a bad agent id. By any method: the store failed for ``store_timeout_s``.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        *,
        max_age_s: float | None = None,
        store_timeout_s: float = DEFAULT_STORE_TIMEOUT_S,
        are_read_once: bool = False,
    ) -> None:
        if not _AGENT_ID.fullmatch(agent_id):
            raise LandingError(
                f"agent id {agent_id!r}: use 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"
            )
        store.clear_stale(agent_id)
        self._stop = threading.Event()
        self._store = PatientStore(store, store_timeout_s, self._stop)
        self._agent_id = agent_id
        self._max_age_s = max_age_s
        self._are_read_once = are_read_once
        self._thread = threading.Thread(target=self._run, name="landing", daemon=True)
        # All below is shared with the thread.
        self._state = threading.Condition(threading.Lock())
        self._gathered = Batch()
        self._due: float | None = None
        self._writing: Batch | None = None
        self._published = Published()
        self._failure: BaseException | None = None

    def __enter__(self) -> LandingWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        with self._state:
            self._state.notify_all()
        self._thread.join()

    def add(self, item: Frame | Gap) -> None:
        """Take one row."""
        with self._state:
            self._gathered.add(item)
            self._roll()

    def add_table(self, frames: pa.Table | pa.RecordBatch) -> None:
        """Take many frames: the columns of the landing zone in any order; those that may be null may be left out.

        Raises:
            KeyError: another column is missing.
            ValueError: a column of another type, or a null where none may be.
        """
        table = pa.Table.from_batches([frames]) if isinstance(frames, pa.RecordBatch) else frames
        table = with_optional(table, LANDING_COLUMNS).select(FRAMES.names).cast(FRAMES)
        ends = frame_ends(table)
        start = 0
        with self._state:
            while start < table.num_rows:
                start = self._gathered.add_table(table, ends, start)
                self._roll()

    def publish(self) -> Published:
        """Make all rows visible.

        Returns:
            The files since the last call.
        """
        with self._state:
            if self._gathered.rows:
                self._hand_over()
            self._await_thread()
            published, self._published = self._published, Published()
            return published

    def _roll(self) -> None:
        """Hand over if there are enough rows, or see to it that it is done in time."""
        if self._failure is not None:
            raise self._failure
        if self._gathered.is_full:
            self._hand_over()
        elif self._max_age_s is not None and self._due is None:
            self._due = time.monotonic() + self._max_age_s
            self._state.notify_all()

    def _hand_over(self) -> None:
        self._await_thread()
        self._begin_writing()
        self._state.notify_all()

    def _await_thread(self) -> None:
        while self._writing is not None and self._failure is None:
            self._state.wait()
        if self._failure is not None:
            raise self._failure

    def _begin_writing(self) -> None:
        self._writing, self._gathered, self._due = self._gathered, Batch(), None

    def _run(self) -> None:
        """The thread: writes batch after batch."""
        try:
            while (batch := self._next()) is not None:
                for file in batch.files(are_read_once=self._are_read_once):
                    self._write(file)
                with self._state:
                    self._writing = None
                    self._state.notify_all()
        except BaseException as failure:  # raised again in the thread that adds rows
            with self._state:
                self._failure = failure
                self._state.notify_all()

    def _next(self) -> Batch | None:
        """The next batch to write, when there is one; None to end."""
        with self._state:
            while True:
                if self._writing is not None:
                    return self._writing
                if self._stop.is_set():
                    return None
                if self._due is None:
                    self._state.wait()
                elif (left := self._due - time.monotonic()) > 0:
                    self._state.wait(left)
                else:
                    self._begin_writing()

    def _write(self, file: LandingFile) -> None:
        for number in itertools.count():
            name = f"{self._agent_id}-{file.start}-{number:04d}"
            path = f"{file.folder}/{name}.parquet"
            size = self._store.size(path)
            if size is None:
                # The manifest first: whoever sees a file finds what it must hold.
                self._store.write([(f"{file.manifests}/{name}.json", file.manifest(path)), (path, file.content)])
                self._published.new.append(path)
                return
            if size == len(file.content) and self._store.read(path) == file.content:
                self._published.present.append(path)
                return
