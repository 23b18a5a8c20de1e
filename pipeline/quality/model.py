"""What a check of data quality is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

import pyarrow as pa

from pipeline.tables import Table

Severity = Literal["critical", "warning"]
Ask = Callable[[str], pa.Table]
"""Answers a query over views of tables."""
Rests = Literal["landing", "silver", "gold", "manifests"]
"""What must be there before a relation can be judged: all batches of landing files noted, all frames read by the query
``exchanges``, all of silver by the query ``gold``; and the manifests of the landing zone."""


COUNTS = pa.schema({"subject": pa.string(), "expected": pa.int64(), "found": pa.int64()})
"""What is compared: numbers that must be equal, of each subject."""
NOT_JUDGED = "not judged"
"""Part of the message of a check that could not be made."""


@dataclass(frozen=True, slots=True)
class QualityResult:
    """A row of ``ops.quality_results``: the outcome of one check; never holds a value of the data.

    Attributes:
        success: whether it held; true also where it could not be judged, which ``message`` states.
        rows_checked: rows looked at; None if it is not about rows, or could not be judged.
        rows_failed: rows (for ``unique_key``: keys; for what tables state of each other: rows too few or too many)
            that violate it; None likewise.
        rows_sql: a query for ``wirelake sql`` that lists those rows; None if it held, or is not about single rows.
    """

    run_id: str
    run_time: datetime
    table_name: str
    name: str
    column_name: str | None
    severity: str
    success: bool
    rows_checked: int | None
    rows_failed: int | None
    message: str
    rows_sql: str | None = None


def critical_failures(results: Iterable[QualityResult]) -> list[QualityResult]:
    """Those that make ``wirelake check`` end with exit code 1."""
    return [result for result in results if not result.success and result.severity == "critical"]


class Expected(Protocol):
    """What a result is about."""

    @property
    def table(self) -> Table:
        """Whose rows are wrong if it does not hold."""

    @property
    def name(self) -> str:
        """Stable; column ``name`` of ``ops.quality_results``."""

    @property
    def severity(self) -> Severity:
        """Of the failure."""

    @property
    def text(self) -> str:
        """What is expected, in words."""


@dataclass(frozen=True, slots=True)
class Plain:
    """No more than that; see Expected."""

    table: Table
    name: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What Great Expectations reported of checks of one table, with the result of each, in the same order."""

    table_name: str
    validation: Any
    results: tuple[QualityResult, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of all checks; ``reports``: what came of it so far."""

    run_id: str
    run_time: datetime
    reports: list[Report] = field(default_factory=list, compare=False)

    @classmethod
    def at(cls, now: datetime) -> Run:
        """A run that begins now."""
        return cls(now.strftime("%Y%m%dT%H%M%S.%fZ"), now)

    def result(
        self,
        about: Expected,
        *,
        success: bool,
        seen: str | None = None,
        column: str | None = None,
        rows: tuple[int, int] | None = None,
        rows_sql: str | None = None,
    ) -> QualityResult:
        """The outcome of one of its checks.

        Args:
            about: what was expected.
            success: whether it held.
            seen: what was seen besides, in words; never a value of the data.
            column: that it is about.
            rows: how many were looked at, and how many violate it.
            rows_sql: lists those that violate it; see QualityResult.
        """
        checked, failed = rows or (None, None)
        message = about.text if seen is None else f"{about.text}; {seen}"
        return QualityResult(
            self.run_id, self.run_time, about.table.full_name, about.name, column, about.severity, success, checked,
            failed, message, rows_sql,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Relation:
    """Counts that must be equal.

    Attributes:
        name, table, severity, text: see Expected.
        reads: the tables that the query names.
        sql: gives ``subject`` (text), ``expected`` and ``found`` (numbers).
        rests_on: what must be there for the counts to be comparable.
    """

    name: str
    table: Table
    severity: Severity
    text: str
    reads: tuple[Table, ...]
    sql: str
    rests_on: tuple[Rests, ...] = ()
