"""How do frames reach the landing zone so that nobody ever sees half a file? (DESIGN: landing zone)."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from decoder.model import Frame, Gap
from pipeline.arrow import arrow_schema
from pipeline.errors import UserError
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_COLUMNS

ROWS_PER_FILE = 100_000
BYTES_PER_FILE = 128 * 1024 * 1024
"""A file is finished at this many rows or frame bytes: large enough to be worth a task, small enough for the memory."""

MANIFESTS = "_manifest"
"""Readers of Hive-style directories ignore names that begin with ``_`` or ``.``."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class LandingError(UserError):
    """Raised when the landing zone cannot be written."""


class Store(Protocol):
    """Where landing files live. Paths are relative, with ``/``."""

    def stage(self, path: str, content: bytes) -> str:
        """Store durably under a name that no reader looks at; a token for publish and discard."""

    def publish(self, staged: str, path: str) -> None:
        """Give a staged file its name, at once."""

    def discard(self, staged: str) -> None:
        """Remove a staged file."""

    def read(self, path: str) -> bytes | None:
        """Content of a file; None if it is not there."""


class LocalStore:
    """A directory of this machine."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._error(error) from error
        if not os.access(self._root, os.W_OK | os.X_OK):
            raise LandingError(f"landing zone {self._root} is not writable; choose another --landing or its owner")

    def stage(self, path: str, content: bytes) -> str:
        """See Store.stage: written beside its later place, so that publishing is one rename."""
        target = self._root / path
        staged = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with staged.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            staged.unlink(missing_ok=True)
            raise self._error(error) from error
        return str(staged)

    def publish(self, staged: str, path: str) -> None:
        """See Store.publish."""
        target = self._root / path
        try:
            Path(staged).replace(target)
            directory = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise self._error(error) from error

    def discard(self, staged: str) -> None:
        """See Store.discard."""
        Path(staged).unlink(missing_ok=True)

    def read(self, path: str) -> bytes | None:
        """See Store.read."""
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> LandingError:
        return LandingError(
            f"landing zone {self._root} cannot be written: {error.strerror or error}; "
            "choose another --landing, or make room and give this user the right to write"
        )


@dataclass(frozen=True, slots=True)
class Published:
    """Landing files by relative path: written now, or found with the same content."""

    new: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Frames or gaps: where their files go and which columns they have."""

    prefix: str
    schema: pa.Schema
    row_type: type[Frame] | type[Gap]


_FRAMES = _Kind("", arrow_schema(LANDING_COLUMNS), Frame)
_GAPS = _Kind("gaps/", arrow_schema(GAP_LANDING_COLUMNS), Gap)


@dataclass(slots=True)
class _Rows:
    """Rows of one kind and day that are not yet written."""

    columns: dict[str, list[Any]]
    count: int = 0
    size: int = 0

    def add(self, item: Frame | Gap) -> None:
        for name, values in self.columns.items():
            values.append(getattr(item, name))
        self.count += 1
        self.size += len(item.frame) if isinstance(item, Frame) else 0


@dataclass(frozen=True, slots=True)
class _Staged:
    token: str
    path: str
    manifest_token: str
    manifest_path: str


class LandingWriter:
    """Writes the rows of one capture. Leaving the context without :meth:`publish` leaves nothing behind.

    Names and content follow from the rows alone, so reading the same capture again finds its files already there. A
    file of the same name with other content (the same capture under another payload policy) is not touched: the new
    one takes the next free number.
    """

    def __init__(self, store: Store, agent_id: str) -> None:
        if not _AGENT_ID.fullmatch(agent_id):
            raise LandingError(
                f"agent id {agent_id!r}: use 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"
            )
        self._store = store
        self._agent_id = agent_id
        self._rows: dict[tuple[str, str], _Rows] = {}
        self._staged: list[_Staged] = []
        self._present: list[str] = []
        self._taken: set[str] = set()

    def __enter__(self) -> LandingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for staged in self._staged:
            self._store.discard(staged.token)
            self._store.discard(staged.manifest_token)
        self._staged = []

    def add(self, item: Frame | Gap) -> None:
        """Take one row."""
        kind = _FRAMES if isinstance(item, Frame) else _GAPS
        key = (kind.prefix, _day(item.ts))
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = _Rows({name: [] for name in kind.schema.names})
        rows.add(item)
        if rows.count >= ROWS_PER_FILE or rows.size >= BYTES_PER_FILE:
            self._write(*key)

    def publish(self) -> Published:
        """Make all rows visible; which files hold them."""
        for key in sorted(self._rows):
            self._write(*key)
        new = []
        while self._staged:
            staged = self._staged[0]
            self._store.publish(staged.manifest_token, staged.manifest_path)
            self._store.publish(staged.token, staged.path)
            new.append(staged.path)
            self._staged.pop(0)
        return Published(new, self._present)

    def _write(self, prefix: str, day: str) -> None:
        rows = self._rows.pop((prefix, day))
        kind = _GAPS if prefix else _FRAMES
        table = pa.table(rows.columns, schema=kind.schema)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        content = sink.getvalue().to_pybytes()
        first, last = min(rows.columns["ts"]), max(rows.columns["ts"])
        number = 0
        while True:
            name = f"{self._agent_id}-{first}-{number:04d}"
            path = f"{prefix}date={day}/{name}.parquet"
            number += 1
            if path in self._taken:
                continue
            there = self._store.read(path)
            if there is None:
                break
            if there == content:
                self._taken.add(path)
                self._present.append(path)
                return
        self._taken.add(path)
        manifest = {
            "path": path,
            "rows": rows.count,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "min_ts": _iso(first),
            "max_ts": _iso(last),
        }
        manifest_path = f"{MANIFESTS}/{prefix}{name}.json"
        token = self._store.stage(path, content)
        try:
            manifest_token = self._store.stage(manifest_path, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        except LandingError:
            self._store.discard(token)
            raise
        self._staged.append(_Staged(token, path, manifest_token, manifest_path))


def _day(ts: int) -> str:
    return (_EPOCH + timedelta(microseconds=ts)).date().isoformat()


def _iso(ts: int) -> str:
    return (_EPOCH + timedelta(microseconds=ts)).isoformat(timespec="microseconds").replace("+00:00", "Z")
