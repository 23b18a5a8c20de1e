"""Work on a lake on which a stream runs: a job hands the work to the stream, and waits.

Only one process may write through a lake's checkpoints. A backfill or maintenance that finds the lake's lock taken
leaves a request in ``<lake>/_requests``. The stream looks there once a second, finishes the batches under way, does
what is asked and continues. Whoever asked passes on what the stream reports meanwhile; should the stream end first, it
does the work itself.

``<id>.json`` is the request, ``<id>.log`` what the stream reports, ``<id>.done`` its end: ``{"error": …}``. Whoever may
write there can have rows deleted: the folder and each file in it must be of the user that looks, and writable by no
other; no link is followed.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.config.settings import MaintenanceSettings
from pipeline.errors import UserError
from pipeline.streaming.operations.own_folder import NotOwnError, OwnFiles, make_own_folder, own_folder
from pipeline.streaming.storage.lake import Lake, LakeError
from pipeline.streaming.storage.lock import LakeBusyError, local_lock
from pipeline.terminal.console import printable

_LOG = logging.getLogger(__name__)
_POLL_S = 0.5
_DAY_S = 86_400
Progress = Callable[[str], None]
ERASED_BY = (
    "client_ip", "connection_id", "client_id", "topic", "group_id", "member_id", "transactional_id", "database",
)  # fmt: skip
"""Names by whose values rows can be erased."""


class Backfill(BaseModel):
    """Derive the days from ``first`` to ``last`` (inclusive) again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["backfill"] = "backfill"
    first: date
    last: date
    recode: bool = False


class Maintenance(BaseModel):
    """Compact, drop what is older than its table keeps, and erase what is under ``erase`` (name and value)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["maintenance"] = "maintenance"
    settings: MaintenanceSettings = MaintenanceSettings()
    erase: tuple[tuple[str, str], ...] = ()
    dry_run: bool = False


Do = Callable[[Backfill | Maintenance, Progress], None]
"""Does what a request asks for. Raises UserError if it cannot be done."""
_READER: TypeAdapter[Backfill | Maintenance] = TypeAdapter(
    Annotated[Backfill | Maintenance, Field(discriminator="kind")]
)


class RefusedError(UserError):
    """Raised when what was asked for cannot be done; the message gives the reason. A stream continues all the same."""


def check_names(wanted: Sequence[tuple[str, str]]) -> None:
    """Refuse what cannot be erased.

    Raises:
        RefusedError: a name that is not known, or no value.
    """
    for name, value in wanted:
        if name not in ERASED_BY or not value:
            raise RefusedError(f"cannot erase {name}={value}: name one of {', '.join(ERASED_BY)}, and a value")


def check_days(first: date, last: date) -> None:
    """Refuse a range without days.

    Args:
        first, last: inclusive.

    Raises:
        RefusedError: the last is before the first.
    """
    if last < first:
        raise RefusedError(f"the range ends ({last}) before it begins ({first})")


def is_asked(lake: Lake) -> bool:
    """Whether a request waits."""
    return bool(_waiting(lake))


def serve(lake: Lake, do: Do) -> None:
    """Do what is asked, request by request; the lock must be held.

    Args:
        lake: where the requests are.
        do: does one.

    Raises:
        Exception: what ``do`` raised, but RefusedError: that one is reported to who asked only.
    """
    _sweep(lake)
    for asked in _waiting(lake):
        content = asked.content()
        if content is None:  # it was withdrawn
            continue
        try:
            request = _READER.validate_json(content)
        except ValidationError as error:
            asked.end(f"the stream does not understand the request; is it of another version? {error}")
            continue
        try:
            do(request, asked.add_line)
        except Exception as error:  # whatever it is: the next stream must not run into it again
            asked.end(str(error))
            if not isinstance(error, RefusedError):
                raise
        else:
            asked.end(None)


def perform(lake: Lake, request: Backfill | Maintenance, do: Do, progress: Progress) -> None:
    """Do what is asked: here, if the lake is free, else by the stream that works on it.

    Args:
        lake: where.
        request: what.
        do: does it; the lock is held then.
        progress: called with a line of text for each step, wherever it is done.

    Raises:
        UserError: what ``do`` raised, here or there.
    """
    asked: _Asked | None = None
    try:
        while True:
            try:
                with local_lock(lake):
                    if asked is None or not asked.is_done:
                        do(request, progress)
                        return
            except LakeBusyError as busy:
                if asked is None:
                    asked = _Asked.of(lake, request)
                    progress(f"process {busy.owner} works on this lake: waiting for it to do this, or to end")
            is_done = asked.is_done
            asked.pass_on(progress)
            if is_done:
                asked.raise_error()
                return
            time.sleep(_POLL_S)
    finally:
        if asked is not None:
            asked.withdraw()


@dataclass(slots=True)
class _Asked:
    """A request that was handed over: its files, and how many lines of its log were passed on."""

    folder: Path
    name: str
    lines_passed: int = 0

    @classmethod
    def of(cls, lake: Lake, request: Backfill | Maintenance) -> _Asked:
        asked = cls(_folder(lake), f"{time.time_ns()}-{uuid.uuid4().hex[:8]}")
        try:
            open_for_requests(lake)
            with own_folder(asked.folder) as files:
                files.write(f"{asked.name}.json", request.model_dump_json())
        except OSError as error:
            raise LakeError(f"cannot ask the stream: {error.strerror} ({asked.folder}); run as its user") from error
        return asked

    def _read(self, suffix: str) -> bytes | None:
        try:
            with own_folder(self.folder) as files:
                return files.read(f"{self.name}{suffix}")
        except FileNotFoundError:
            return None

    @property
    def is_done(self) -> bool:
        return self._read(".done") is not None

    def pass_on(self, progress: Progress) -> None:
        """Pass on what was reported since the last time."""
        lines = (self._read(".log") or b"").decode("utf-8").splitlines()
        for line in lines[self.lines_passed :]:
            progress(line)
        self.lines_passed = len(lines)

    def raise_error(self) -> None:
        """Raise the error with which it ended, if it did."""
        error = json.loads(self._read(".done") or b'{"error": "its end is gone"}')["error"]
        if error is not None:
            raise RefusedError(error)

    def withdraw(self) -> None:
        """Leave no trace."""
        with suppress(OSError, NotOwnError), own_folder(self.folder) as files:
            files.remove(*(f"{self.name}{suffix}" for suffix in (".json", ".log", ".done")))

    def content(self) -> bytes | None:
        """Of the request; None: the request is gone."""
        with suppress(OSError, NotOwnError):
            return self._read(".json")
        return None

    def add_line(self, text: str) -> None:
        """Report a step to who asked."""
        with self._answering(".log") as files:
            if files is not None:
                files.append(f"{self.name}.log", text.replace("\n", " ") + "\n")

    def end(self, error: str | None) -> None:
        """Report the end to who asked; ``error``: why it could not be done."""
        with self._answering(".done") as files:
            if files is not None:
                files.write(f"{self.name}.done", json.dumps({"error": error}))

    @contextmanager
    def _answering(self, suffix: str) -> Iterator[OwnFiles | None]:
        """The files while somebody waits, else None. What cannot be written is reported, and stops no work."""
        try:
            with own_folder(self.folder) as files:
                yield files if files.holds(f"{self.name}.json") else None
        except FileNotFoundError:
            pass
        except (OSError, NotOwnError) as error:
            _report(f"{self.folder / self.name}{suffix} is not written: {_reason(error)}")


def _folder(lake: Lake) -> Path:
    return Path(lake.root) / "_requests"


def _waiting(lake: Lake) -> list[_Asked]:
    """Requests without an answer, the oldest first; what another user may have put there is reported, and left."""
    if not lake.is_local:
        return []
    folder, found = _folder(lake), list[_Asked]()
    try:
        with own_folder(folder) as files:
            for name in files.names():
                asked = _Asked(folder, name.removesuffix(".json"))
                if not name.endswith(".json") or files.holds(f"{asked.name}.done"):
                    continue
                with suppress(FileNotFoundError):
                    if (fault := files.fault(name)) is None:
                        found.append(asked)
                    else:
                        _report(f"no request is taken from {folder / name}: it {fault}")
    except FileNotFoundError:
        return []
    except (OSError, NotOwnError) as error:
        _report(f"no request is taken: {_reason(error)}")
    return found


def open_for_requests(lake: Lake, *, is_served: bool = True) -> None:
    """Make the place for requests, as the user of the stream, who must be able to answer there.

    Args:
        lake: where.
        is_served: whether anything will be taken from there; else it does not matter whose it is.

    Raises:
        NotOwnError: it may be somebody else's.
    """
    if not lake.is_local:
        return
    try:
        make_own_folder(_folder(lake))
    except NotOwnError:
        if is_served:
            raise


def _sweep(lake: Lake) -> None:
    """Remove what was answered a day ago to somebody who was killed meanwhile."""
    with suppress(OSError, NotOwnError), own_folder(_folder(lake)) as files:
        for name in files.names():
            if name.endswith(".done") and files.changed_s(name) < time.time() - _DAY_S:
                _Asked(_folder(lake), name.removesuffix(".done")).withdraw()


def _reason(error: OSError | NotOwnError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


@lru_cache(maxsize=256)
def _report(text: str) -> None:
    """Once: a stream looks each second."""
    _LOG.warning("%s", printable(text))
