"""Containment of failures: one step that raises costs itself alone, and is noted without anything of the payload.

A step is a rule, a derivation, the statements of one exchange. Outside of :func:`noting` failures are raised as they
are, so that tests of a step see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.fit import table_of
from pipeline.errors import UserError
from pipeline.tables import INTERNAL_ERRORS

T = TypeVar("T")

MOST_NOTED = 1_000
"""Distinct failures that are noted at once: a fault of ours may show in each of a million exchanges."""
_INFRASTRUCTURE = (OSError, duckdb.IOException)
"""A disk or a network that fails is no fault of a step: the run stops, and can be repeated."""
_ENGINES = ("pyspark", "py4j", "deltalake", "_internal")
"""Packages whose exceptions are no fault of a step either; delta-rs names its own module `_internal`."""
_STORAGE = ("pipeline.streaming.storage", "pipeline.lake.delta_reader")
"""Modules of ours that read and write tables for steps: likewise."""
_OUT_OF_MEMORY = (MemoryError, duckdb.OutOfMemoryException)
_OURS = ("decoder", "pipeline", "wirelake")


class TooMuchToJudge(Exception):  # noqa: N818 - it is a decision, not an error
    """Raised by a step that would take more work than its budget; the message says what there was too much of."""


@dataclass(frozen=True, slots=True)
class InternalError:
    """A failure of a step.

    Attributes:
        step: what failed, for example ``rule offset_reset`` or ``table gold.offset_timeline``.
        subject: what it was about: an exchange id, a finding id; empty if that is not known.
        error: class of the exception, or ``TooMuchToJudge``.
        place: module and line of ours that raised; of :class:`TooMuchToJudge` its message.
    """

    step: str
    subject: str
    error: str
    place: str

    @classmethod
    def of(cls, error: Exception, step: str, subject: str = "") -> InternalError:
        """The failure that an exception is. Its message may quote payload, and is left out."""
        if isinstance(error, TooMuchToJudge):
            return cls(step, subject, TooMuchToJudge.__name__, str(error))
        if isinstance(error, _OUT_OF_MEMORY):
            return cls(step, subject, TooMuchToJudge.__name__, "it takes more memory than there is")
        return cls(step, subject, type(error).__name__, _place(error.__traceback__))

    @property
    def is_excess(self) -> bool:
        """Whether the step stopped because there was too much to judge."""
        return self.error == TooMuchToJudge.__name__

    def __str__(self) -> str:
        if self.is_excess:
            return f"{self.step}: too much to judge: {self.place}"
        about = f" on {self.subject}" if self.subject else ""
        return f"{self.step}: internal error{about}: {self.error} at {self.place}"


@dataclass(slots=True)
class Noted:
    """Failures, each once."""

    _errors: dict[InternalError, None] = field(default_factory=dict)

    def add(self, errors: Iterable[InternalError]) -> None:
        """Note failures, at most :data:`MOST_NOTED` of them."""
        for error in errors:
            if len(self._errors) < MOST_NOTED:
                self._errors.setdefault(error)

    @property
    def errors(self) -> tuple[InternalError, ...]:
        """What was noted, in the order in which it happened."""
        return tuple(self._errors)


def errors_table(
    errors: Iterable[InternalError], query: str, noted_us: int, batch_id: int = -1, checkpoint: str = ""
) -> pa.Table:
    """Rows of ``ops.internal_errors``.

    Args:
        errors: the failures.
        query: name of the query or command that ran the steps.
        noted_us: wall clock, µs since the epoch.
        batch_id, checkpoint: of the query's batch; by default it is outside of batches.
    """
    of_batch = {"query": query, "batch_id": batch_id, "checkpoint": checkpoint, "noted_at": noted_us}
    return table_of(({**of_batch, **asdict(error)} for error in errors), INTERNAL_ERRORS)


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)


@contextmanager
def noting(noted: Noted | None = None) -> Iterator[Noted]:
    """Contain failures within the block, and note them.

    Args:
        noted: where to; None: in a new one, also within a block of another.
    """
    some = Noted() if noted is None else noted
    token = _NOTED.set(some)
    try:
        yield some
    finally:
        _NOTED.reset(token)


def contain(error: Exception, step: str, subject: str = "") -> None:
    """Note a failure; raise it where failures are not noted, or where the step is not to blame."""
    noted = _NOTED.get()
    if noted is None or is_infrastructure(error) or isinstance(error, UserError):
        raise error
    noted.add([InternalError.of(error, step, subject)])


def report(error: Exception, step: str, subject: str = "") -> None:
    """Note a failure whose place something has taken already, if anybody notes."""
    noted = _NOTED.get()
    if noted is not None:
        noted.add([InternalError.of(error, step, subject)])


def attempt(step: str, work: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """What ``work`` gives; if it raises, the failure is contained, and ``otherwise`` gives what takes its place."""
    try:
        return work()
    except Exception as error:
        contain(error, step)
        return otherwise()


def is_infrastructure(error: Exception) -> bool:
    """Whether a disk, a network or a file failed, also within a query of DuckDB that reads one."""
    if isinstance(error, _INFRASTRUCTURE) or (isinstance(error, duckdb.Error) and "IOError" in str(error)):
        return True
    if type(error).__module__.partition(".")[0] in _ENGINES:
        return True
    return _place(error.__traceback__).startswith(_STORAGE)


def _place(trace: TracebackType | None) -> str:
    """The innermost line of ours."""
    found = "unknown"
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0].startswith(_OURS):
            found = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def by_parts(step: str, work: Callable[[pa.Table], pa.Table], rows: pa.Table, by: str) -> list[pa.Table]:
    """What ``work`` makes of rows. If it raises, of each half of them, until the part that fails is left out and noted.

    Args:
        step: see InternalError.
        work: takes some of the rows, those with one value of ``by`` together.
        rows: what to work on.
        by: the column that distinguishes parts.
    """
    try:
        return [work(rows)]
    except Exception as error:
        parts = pc.unique(rows.column(by))
        if len(parts) < 2 or _NOTED.get() is None or is_infrastructure(error):
            contain(error, step, str(parts[0]) if len(parts) and pa.types.is_string(parts.type) else "")
            return []
    middle = len(parts) // 2
    halves = (rows.filter(pc.is_in(rows.column(by), some)) for some in (parts[:middle], parts[middle:]))
    return [one for half in halves for one in by_parts(step, work, half, by)]
