"""New files of a landing zone that grows, each once; folders are listed when something has changed in them."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.capture.landing.manifests import Kind, manifest_place, start_of
from pipeline.embedded.inputs import checked, rows_of

_MOST_FILES = 32
"""Files that are taken at once."""

_ENOUGH_ROWS = 50_000
"""No further file is taken at once with this many rows: decoded they take some 100 MB."""

_SETTLED_NS = 2_000_000_000
"""A folder's time of change may stay the same for so long although another file has come: clocks are coarse, ns."""

_DAY = re.compile(r"date=\d{4}-\d\d-\d\d")
_ROOTS: dict[Kind, str] = {"frames": "", "gaps": "gaps"}


@dataclass(slots=True)
class _Folder:
    """A day's folder: which names are known of those that are in it, and the time of its last change by then, ns."""

    names: frozenset[str] = frozenset()
    changed_ns: int | None = None


@dataclass(slots=True)
class NewFiles:
    """What is new in a landing zone.

    Args:
        zone: its folder.
        removes: whether files go when they were taken: then they are our own, and not compared with their manifests.

    Attributes:
        set_aside: why files were left out, since this was taken the last time.
    """

    zone: Path
    removes: bool = False
    set_aside: list[str] = field(default_factory=list)
    _is_closed: bool = False
    _folders: dict[Path, _Folder] = field(default_factory=dict)
    _waiting: dict[Kind, list[Path]] = field(default_factory=lambda: {kind: [] for kind in _ROOTS})

    def take(self) -> tuple[pa.Table, pa.Table] | None:
        """Frames and gaps of further files, in the order of their first rows; None: there are none now.

        Raises:
            UserError: a file cannot be read.
        """
        if not self._is_closed:
            self._look_for_all()
        taken = {kind: self._next(kind) for kind in _ROOTS}
        if not any(taken.values()):
            return None
        good = dict(taken)
        if not self.removes:
            for kind, files in taken.items():
                good[kind], bad = checked(self.zone, kind, files)
                self.set_aside += bad
        rows = rows_of(good["frames"], good["gaps"])
        if self.removes:
            for kind, files in taken.items():
                for file in files:
                    file.unlink(missing_ok=True)
                    (self.zone / manifest_place(kind, file.stem)).unlink(missing_ok=True)
        return rows

    @property
    def has_more(self) -> bool:
        """Whether files were there already that :meth:`take` left for the next time: more comes than is taken."""
        return any(self._waiting.values())

    def close(self) -> None:
        """Look for files for the last time: those that come later are not taken."""
        if not self._is_closed:
            self._look_for_all()
            self._is_closed = True

    def _next(self, kind: Kind) -> list[Path]:
        """Some of those that wait and are still there, the earliest first; none: there are no more.

        Others may remove what is old, also all that would have come next.
        """
        waiting, files, rows = self._waiting[kind], list[Path](), 0
        passed = 0
        for file in waiting:
            if len(files) == _MOST_FILES or rows >= _ENOUGH_ROWS:
                break
            passed += 1
            if file.exists():
                files.append(file)
                rows += _rows_in(file)
        self._waiting[kind] = waiting[passed:]
        return files

    def _look_for_all(self) -> None:
        for kind in _ROOTS:
            self._look(kind)

    def _look(self, kind: Kind) -> None:
        """Put files that have come to those that wait."""
        root = self.zone / _ROOTS[kind]
        new: list[Path] = []
        try:
            with os.scandir(root) as entries:
                days = [Path(entry.path) for entry in entries if _DAY.fullmatch(entry.name)]
        except FileNotFoundError:
            days = []
        for folder in self._folders.keys() - set(days):
            if folder.parent == root:  # it is not looked at any more: there would be one more each day
                del self._folders[folder]
        for day in days:
            new += self._come(day)
        if new:
            self._waiting[kind] = sorted([*self._waiting[kind], *new], key=lambda file: (start_of(file.stem), file))

    def _come(self, day: Path) -> list[Path]:
        """Files of a folder that were not known; of known ones that have gone nothing is kept."""
        known = self._folders.setdefault(day, _Folder())
        now_ns = time.time_ns()
        try:
            changed_ns = day.stat().st_mtime_ns
            if changed_ns == known.changed_ns:
                return []
            with os.scandir(day) as entries:
                names = frozenset(
                    entry.name for entry in entries if entry.name.endswith(".parquet") and entry.name[0] != "."
                )
        except FileNotFoundError:  # it has gone with all that was in it
            del self._folders[day]
            return []
        new = names - known.names
        known.names = names
        known.changed_ns = changed_ns if now_ns - changed_ns > _SETTLED_NS else None
        return [day / name for name in new]


def _rows_in(file: Path) -> int:
    """As the file states them; 0 of one that cannot be read, which is found when it is."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError):
        return 0
