"""Makes a lake of tables without a JVM: by delta-rs, all of them or none; beside it first, then renamed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from pipeline.analysis.fit import schema_of
from pipeline.errors import UserError
from pipeline.lake.delta_writer import create_table, writer_properties
from pipeline.lake.path_checks import meant_url
from pipeline.lake.permissions import current_umask
from pipeline.tables import INCIDENT_NOTES, TABLES, WRITTEN_BY_DIAGNOSE, Table

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STDERR = threading.Lock()  # it is one for the whole process
_PATIENCE_S = 30.0
"""Whoever else puts a lake there renames two folders and removes one, s."""

_OF_LAKE = {WRITTEN_BY_DIAGNOSE, *(Path(table.path).parts[0] for table in TABLES.values())}
_BY_SYSTEM = re.compile(r"([^:↳]+?) \(os error \d+\)")


def refuse_lake(root: Path) -> None:
    """Refuse a folder that holds anything else than a lake which was written here.

    Raises:
        UserError: the folder belongs to a job, or to somebody else; or it is none of this machine.
    """
    if url := meant_url(str(root)):  # as a path it has lost a slash
        raise UserError(f"{url} is a URL: diagnose leaves its tables in a folder of this machine")
    if not root.exists():
        return
    if Path.cwd().resolve().is_relative_to(root.resolve()):
        raise UserError("the lake takes the place of the whole folder, in which you are: name one below it")
    if not root.is_dir():
        raise UserError(f"{root} is a file: name a folder for the lake")
    if (root / "_checkpoints").exists():
        raise UserError(f"{root} is the lake of `wirelake stream`, which alone writes to it: name another folder")
    if not (root / WRITTEN_BY_DIAGNOSE).exists() and any(root.iterdir()):
        raise UserError(f"{root} is not empty, and no lake of `wirelake diagnose`: name another folder")
    strange = sorted(one.name for one in root.iterdir() if one.name not in _OF_LAKE)
    if strange:
        raise UserError(
            f"{root} would be replaced, with {strange[0]}, which is of no lake: take that away, or name another folder"
        )


def write_lake(root: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write a lake, in the place of one that was written here before.

    Args:
        root: its folder.
        tables: by full name; those of the registry that are missing are empty.

    Raises:
        UserError: the folder is not ours to write, or cannot be written.
    """
    refuse_lake(root)
    root = Path(os.path.realpath(root))  # what a link leads to is replaced, not the link
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
        try:
            with _panics_as_errors(root), _without_output():
                for table in TABLES.values():
                    _write(fresh, table, tables.get(table.full_name))
                _keep_notes(root, fresh)
            (fresh / WRITTEN_BY_DIAGNOSE).touch()
            fresh.chmod(0o777 & ~current_umask())  # a temporary folder is for its owner alone, whatever is set
            _put_in_place(fresh, root)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except (OSError, DeltaError) as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise UserError(f"cannot write the lake {root}: {reason}") from error


def _keep_notes(root: Path, fresh: Path) -> None:
    """What people noted of incidents continues: an incident that is found again has the same id."""
    if (held := root / INCIDENT_NOTES.path).is_dir():
        shutil.rmtree(fresh / INCIDENT_NOTES.path)
        shutil.copytree(held, fresh / INCIDENT_NOTES.path)


def _reason(error: OSError | DeltaError) -> str | None:
    """Why something cannot be written, in a few words; None: that is not what went wrong.

    delta-rs prints the chain of causes as a tree in colours; the last line is the system's message.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).splitlines() if line.strip()]
    by_system = _BY_SYSTEM.search(lines[-1]) if lines else None
    if by_system is not None:
        return by_system[1].strip()
    return lines[-1].lstrip("↳ ") if lines and isinstance(error, OSError) else None


@contextmanager
def _panics_as_errors(root: Path) -> Iterator[None]:
    """A panic of delta-rs is an error as others are; its class, no Exception, is not to be had by import."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())
        raise UserError(
            f"cannot write the lake {root}: delta-rs gave up ({reason}); name a folder without signs like [ and ]"
        ) from error


@contextmanager
def _without_output() -> Iterator[None]:
    """What threads of delta-rs print when nothing can be written goes nowhere: the reason comes as an exception."""
    with _STDERR:
        before = _copy_of_stderr()
        if before is None:  # there is nothing to keep quiet
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            os.close(nowhere)


def _copy_of_stderr() -> int | None:
    """A further descriptor of standard error; None: it is closed."""
    if sys.stderr is None:  # since before we began: what has its number now may be any other file
        return None
    try:
        sys.stderr.flush()
        return os.dup(2)
    except OSError:
        return None


def _write(root: Path, table: Table, rows: pa.Table | None) -> None:
    place = str(root / table.path)
    create_table(place, table)
    if rows is not None and rows.num_rows:
        target = pa.schema(
            [one.with_nullable(column.nullable) for column, one in zip(table.columns, schema_of(table), strict=True)]
        )
        write_deltalake(place, rows.cast(target), mode="append", writer_properties=writer_properties(table))


def _put_in_place(fresh: Path, root: Path) -> None:
    """Take the place of what is there, one after the other if several want it: what was put last stays."""
    with _alone(root):
        refuse_lake(root)  # somebody else may have come meanwhile
        if not root.exists():
            fresh.rename(root)
            return
        old = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))
        kept = old / root.name
        try:
            try:  # before the lake goes away: a signal may come right after that
                root.rename(kept)
                fresh.rename(root)
            finally:
                if not root.exists() and kept.exists():
                    kept.rename(root)
        finally:
            if root.exists():  # else the only lake is in there
                shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Of all processes that put a lake there one at a time.

    The lock is a file of our own beside the lake, gone afterwards: everybody who may read a folder could hold its own.

    Raises:
        UserError: another process has held it for long.
    """
    place = root.parent / f".{root.name}.lock"
    deadline = time.monotonic() + _PATIENCE_S
    while (descriptor := _locked(place)) is None:
        if time.monotonic() > deadline:
            raise UserError(
                f"another process puts a lake at {root} and does not end: try again later, or name another folder"
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(place: Path) -> int | None:
    """A descriptor that holds the lock; None: another holds it."""
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), place.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):  # or whoever held it has removed it: it locks nothing any more
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
