"""Where landing files are kept, each of which appears there only when it is whole."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipeline.errors import UserError


class LandingError(UserError):
    """Raised when the landing zone cannot be written; the message states what to do."""


class Store(Protocol):
    """Where landing files live. Paths are relative, with ``/``. Every method raises LandingError if the place fails."""

    def size(self, path: str) -> int | None:
        """Bytes of a file; None if it is not there."""

    def read(self, path: str) -> bytes | None:
        """Content of a file; None if it is not there."""

    def write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Make files (path, content) visible in this order, each whole and durable.

        After an error those that did appear are removed again, as far as the place allows: the first announce the last.
        May be repeated then: what is there is replaced by the same content.
        """

    def clear_stale(self, agent_id: str) -> None:
        """Remove what processes of this agent left behind when they died while they wrote."""


STAGING = ".staging"
"""Folder of files that are being written. Made once: where it is missing later, so is the landing zone's volume."""

_PROCESS = f"{time.time_ns():x}"
"""Distinguishes this process from an earlier one with the same number, as every agent in a container has."""

_ADVICE = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there, or raise the quota of this user",
    errno.EFBIG: "raise the limit of this process for the size of files (ulimit -f), or make room there",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there (chown, chmod; chattr -i)",
    errno.EROFS: "mount it for writing (mount -o remount,rw)",
    errno.ENOTDIR: "there is a file where a folder must be: move it away",
    errno.EIO: "the device fails: see the kernel's log (dmesg)",
}


class LocalStore:
    """A directory of this machine: written under a name that no reader looks at, fsynced, renamed.

    Raises:
        LandingError: the directory cannot be made or written.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._staging = self._root / STAGING
        self._mark = f".{socket.gethostname()}.{os.getpid()}.{_PROCESS}"
        self._numbers = itertools.count()
        try:
            self._staging.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._error(error) from error
        if not all(os.access(folder, os.W_OK | os.X_OK) for folder in (self._root, self._staging)):
            raise LandingError(f"landing zone {self._root} is not writable; choose another --landing or its owner")

    def size(self, path: str) -> int | None:
        """See Store.size."""
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from error

    def read(self, path: str) -> bytes | None:
        """See Store.read."""
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error(error) from error

    def write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """See Store.write: no file gets its name before all are on the disk."""
        staged: list[tuple[Path, Path]] = []
        visible: list[Path] = []
        try:
            for path, content in files:
                target = self._root / path
                source = self._staging / f".{target.name}{self._mark}.{next(self._numbers)}.tmp"
                staged.append((source, target))
                with source.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for source, target in staged:
                self._make(target.parent)
                source.replace(target)
                visible.append(target)
                _sync(target.parent)
        except OSError as error:
            if len(visible) < len(files) and not (self._root / files[len(visible)][0]).exists():
                for target in visible:
                    _remove(target)
            raise self._error(error) from error
        finally:
            for source, _ in staged:
                _remove(source)

    def clear_stale(self, agent_id: str) -> None:
        """See Store.clear_stale. A process counts as dead if its number is free on this host, or is now our own."""
        host = re.escape(socket.gethostname())
        name = re.compile(
            rf"\.(?P<name>{re.escape(agent_id)}-\d+-\d+)\.(?:parquet|json)\.{host}\.(?P<pid>\d+)\.(?P<process>[0-9a-f]+)\.\d+\.tmp"
        )
        try:
            for entry in self._staging.iterdir():
                found = name.fullmatch(entry.name)
                if found and not _is_alive(int(found["pid"]), found["process"]):
                    self._withdraw(found["name"])
                    _remove(entry)
        except OSError as error:
            raise self._error(error) from error

    def _withdraw(self, name: str) -> None:
        """Remove the manifest of a file that never appeared: a reader would take it for one that was deleted."""
        for manifest in (self._root / "_manifest" / f"{name}.json", self._root / "_manifest" / "gaps" / f"{name}.json"):
            try:
                path = str(json.loads(manifest.read_bytes())["path"])
            except (FileNotFoundError, ValueError, KeyError, TypeError):
                continue
            if not (self._root / path).exists():
                _remove(manifest)

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, durably, but not the root."""
        if folder == self._root or folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)

    def _error(self, error: OSError) -> LandingError:
        if error.errno == errno.ENOENT and not self._staging.is_dir():
            problem = f"its folder {STAGING} is gone"
            advice = f"mount its volume again, or, if it was removed on purpose, mkdir -p {self._staging}"
        else:
            problem = error.strerror or str(error)
            advice = _ADVICE.get(error.errno or 0, "choose another --landing, or give this user the right to write")
        return LandingError(f"landing zone {self._root} cannot be written: {problem}; {advice}")


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file if that is possible; clear_stale of a later process does it otherwise."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _is_alive(pid: int, process: str) -> bool:
    if pid == os.getpid():
        return process == _PROCESS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
