"""The files of a ring, a directory into which ``tcpdump -C``/``-G`` or ``dumpcap -b`` rotates its files."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.progress import FileId

SETTLED_S = 10.0
"""A file that has not grown for so long is taken for finished, even if it is the newest: on a quiet network the next
packet may take its time. If the file grows later, the rest is read then."""

_SMALLEST_HEADER_BYTES = 24
_COMPRESSED_SUFFIXES = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class RingFile:
    """A capture file of the ring.

    Attributes:
        size: bytes.
        is_finished: there is a newer one, or it has not grown for SETTLED_S.
        is_newest: the one that is being written, if any is.
    """

    id: FileId
    path: str
    size: int
    is_finished: bool
    is_newest: bool

    @property
    def is_growing(self) -> bool:
        """Whether it can be read while it is being written: a compressed one is not complete before it is finished."""
        return self.is_newest and not self.path.endswith(_COMPRESSED_SUFFIXES)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a file was like: since when (time.monotonic, s), and which it is; None if it holds no packet yet."""

    size: int
    changed_ns: int
    id: FileId | None
    since: float


class Ring:
    """The capture files of a directory; one capture at a time writes there.

    Args:
        on_problem: called once for each file that is no capture.
    """

    def __init__(self, directory: str | Path, on_problem: Callable[[str], None]) -> None:
        self.directory = str(Path(directory).absolute())
        self._on_problem = on_problem
        self._seen: dict[str, _Seen] = {}
        self._reported: set[str] = set()

    def look(self) -> list[RingFile]:
        """The files that hold packets, in the order of their first packets.

        Raises:
            CaptureError: the directory cannot be listed.
        """
        try:
            paths = [p for p in Path(self.directory).iterdir() if p.is_file() and not p.name.startswith(".")]
        except OSError as error:
            raise CaptureError(
                self.directory, f"cannot be followed: {error.strerror}; give the directory that the capture writes to"
            ) from error
        seen = {str(path): state for path in paths if (state := self._examine(path)) is not None}
        self._seen = seen
        now, quiet = time.time_ns(), time.monotonic() - SETTLED_S
        kept: dict[FileId, tuple[str, _Seen]] = {}
        for path, state in sorted(seen.items()):  # x.pcap before x.pcap.gz, which may not be complete yet
            if state.id is not None:
                kept.setdefault(state.id, (path, state))
        empty = [state for state in seen.values() if state.id is None]
        # One that was finished before the clock was set back stays the newest by its time, but does not grow.
        growing = [
            s for s in (*empty, *(state for _, state in kept.values())) if s.changed_ns <= now or s.since > quiet
        ]
        newest = max((state.changed_ns for state in growing), default=0)
        files = []
        for id_, (path, state) in sorted(kept.items()):
            is_newest = state.changed_ns == newest
            settled = now - state.changed_ns >= SETTLED_S * 1e9 or state.since <= quiet
            files.append(RingFile(id_, path, state.size, settled or not is_newest, is_newest))
        return files

    def is_overwritten(self, file: RingFile) -> bool:
        """Whether a later file has taken this one's place."""
        try:
            return _first(file.path, self._name(Path(file.path))) != file.id
        except CaptureError:  # as long as the later one is empty
            return Path(file.path).exists()

    def _examine(self, path: Path) -> _Seen | None:
        try:
            status = path.stat()
        except OSError:
            return None  # it has just been removed
        before = self._seen.get(str(path))
        if before is not None and (before.size, before.changed_ns) == (status.st_size, status.st_mtime_ns):
            return before
        try:
            first = _first(str(path), self._name(path)) if status.st_size >= _SMALLEST_HEADER_BYTES else None
        except CaptureError as error:
            if path.exists() and str(path) not in self._reported:
                self._reported.add(str(path))
                self._on_problem(f"{error}; left out")
            return None
        return _Seen(status.st_size, status.st_mtime_ns, first, time.monotonic())

    @staticmethod
    def _name(path: Path) -> str:
        return path.stem if path.suffix in _COMPRESSED_SUFFIXES else path.name


def _first(path: str, name: str) -> FileId | None:
    try:
        with closing(read_packets(path)) as packets:
            first = next(packets, None)
    except DamagedCaptureError:
        return None
    return None if first is None else FileId(first.ts_us, name)
