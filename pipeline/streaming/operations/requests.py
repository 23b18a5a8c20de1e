"""How does a job get its work done on a lake on which a stream runs? It hands the work to the stream, and waits.

Only one process may write through a lake's checkpoints. A backfill or maintenance that finds the lake's lock taken
leaves a request in ``<lake>/_requests``. The stream looks there once a second, finishes the batches under way, does
what is asked and goes on. Whoever asked passes on what the stream reports meanwhile; should the stream end first, it
does the work itself.

``<id>.json`` is the request, ``<id>.log`` what the stream reports, ``<id>.done`` its end: ``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.errors import UserError
from pipeline.settings import MaintenanceSettings
from pipeline.streaming.storage.lake import Lake, LakeError
from pipeline.streaming.storage.lock import LakeBusyError, job_lock

_POLL_S = 0.5
_DAY_S = 86_400
Progress = Callable[[str], None]
ERASED_BY = (
    "client_ip", "connection_id", "client_id", "topic", "group_id", "member_id", "transactional_id", "database",
)  # fmt: skip
"""Names by whose values rows can be erased."""


class Backfill(BaseModel):
    """Derive the days from ``first`` to ``last`` (inclusive) anew."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["backfill"] = "backfill"
    first: date
    last: date
    recode: bool = False


class Maintenance(BaseModel):
    """Compact, drop what is older than its table keeps, and erase what stands under ``erase`` (name and value)."""

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
    """Raised when what was asked for cannot be done; the message gives the reason. A stream goes on all the same."""


def check_names(wanted: Sequence[tuple[str, str]]) -> None:
    """Refuse what cannot be erased.

    Raises:
        RefusedError: a name that is not known, or no value.
    """
    for name, value in wanted:
        if name not in ERASED_BY or not value:
            raise RefusedError(f"cannot erase {name}={value}: name one of {', '.join(ERASED_BY)}, and a value")


def check_days(first: date, last: date) -> None:
    """Refuse days of which there are none.

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
    for path in _waiting(lake):
        try:
            request = _READER.validate_json(path.read_bytes())
        except FileNotFoundError:  # it was withdrawn
            continue
        except ValidationError as error:
            _end(path, f"the stream does not understand the request; is it of another version? {error}")
            continue
        try:
            do(request, partial(_add_line, path))
        except Exception as error:  # whatever it is: the next stream must not run into it again
            _end(path, str(error))
            if not isinstance(error, RefusedError):
                raise
        else:
            _end(path, None)


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
                with job_lock(lake):
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
    """A request that was handed over: its file, and how many lines of its log were passed on."""

    path: Path
    lines_passed: int = 0

    @classmethod
    def of(cls, lake: Lake, request: Backfill | Maintenance) -> _Asked:
        path = _folder(lake) / f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.json"
        try:
            open_for_requests(lake)
            _write(path, request.model_dump_json())
        except OSError as error:
            raise LakeError(f"cannot ask the stream: {error.strerror} ({path.parent}); run as its user") from error
        return cls(path)

    @property
    def is_done(self) -> bool:
        return self.path.with_suffix(".done").exists()

    def pass_on(self, progress: Progress) -> None:
        """Pass on what was reported since the last time."""
        log = self.path.with_suffix(".log")
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        for line in lines[self.lines_passed :]:
            progress(line)
        self.lines_passed = len(lines)

    def raise_error(self) -> None:
        """Raise the error with which it ended, if it did."""
        error = json.loads(self.path.with_suffix(".done").read_text(encoding="utf-8"))["error"]
        if error is not None:
            raise RefusedError(error)

    def withdraw(self) -> None:
        """Leave no trace."""
        for suffix in (".json", ".log", ".done"):
            self.path.with_suffix(suffix).unlink(missing_ok=True)


def _folder(lake: Lake) -> Path:
    return Path(lake.root) / "_requests"


def _waiting(lake: Lake) -> list[Path]:
    """Requests without an answer, the oldest first."""
    if not lake.is_local or not _folder(lake).is_dir():
        return []
    found = [path for path in _folder(lake).glob("*.json") if not path.with_suffix(".done").exists()]
    return sorted(found, key=lambda path: path.name)


def open_for_requests(lake: Lake) -> None:
    """Make the place for requests, as the user of the stream, who must be able to answer there."""
    if lake.is_local:
        _folder(lake).mkdir(exist_ok=True)


def _sweep(lake: Lake) -> None:
    """Remove what was answered a day ago to somebody who was killed meanwhile."""
    for done in _folder(lake).glob("*.done"):
        with suppress(OSError):
            if done.stat().st_mtime < time.time() - _DAY_S:
                _Asked(done).withdraw()


def _end(path: Path, error: str | None) -> None:
    if path.exists():  # else nobody waits any more
        with suppress(OSError):
            _write(path.with_suffix(".done"), json.dumps({"error": error}))


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)  # noqa: PTH105 - atomic, so that no half request is ever read


def _add_line(path: Path, text: str) -> None:
    if path.exists():
        with suppress(OSError), path.with_suffix(".log").open("a", encoding="utf-8") as file:
            file.write(text.replace("\n", " ") + "\n")
