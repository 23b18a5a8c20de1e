"""A table, and a column of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

FRAMES_DAYS = 30
"""Raw frames are most of the lake; what follows from them stays longer."""
DERIVED_DAYS = 180
"""Of silver and gold alike: gold is derived from silver, also again when a late frame arrives."""
OPS_DAYS = 90

LAYOUT = 3
"""How tables are in a lake: it grows where an older release would misread what this one writes, or undo it.

Layout 2 has other names of some tables, columns and values; those of layout 1 are the ``former`` ones below. In
layout 3 ``silver.exchanges`` names its frames, and does not hold their bodies a second time.
"""
LAYOUT_PROPERTY = "wirelake.layout"
"""Property of each table that states it; a table without is of layout 1."""

WRITTEN_BY_DIAGNOSE = "_written_by_diagnose"
"""A file in lakes that ``diagnose`` wrote. No job continues with such a lake: it would not know what is in it."""

UNLIKE = frozenset(
    {
        *("exchange_id", "seq", "correlation_id", "ts", "ts_end", "request_ts", "response_ts"),
        *("header", "body", "frame", "request_header", "request_body", "response_header", "response_body"),
    }
)
"""Columns whose values differ from row to row: a Parquet writer would begin a dictionary of them for nothing."""


def quoted(text: str) -> str:
    """A Spark SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: Spark SQL type, what it means, and whether null is allowed.

    Attributes:
        former_name: in lakes of layout 1; None: the same.
        former_values: values of layout 1, each with what it is called now; those that are not listed are the same.
    """

    name: str
    type: str
    comment: str
    nullable: bool = True
    former_name: str | None = None
    former_values: tuple[tuple[str, str], ...] = ()

    @property
    def has_former(self) -> bool:
        """Whether a lake of layout 1 has another name of it, or of some of its values."""
        return self.former_name is not None or bool(self.former_values)


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table at ``<lake>/<schema>/<name>``.

    Attributes:
        key: columns that identify a row; no two rows share them; null counts as a value.
        partition_by: columns of the directory layout.
        checks: CHECK constraints by name, as SQL over the row.
        keep_days: days after which `wirelake maintain` drops a row, unless the settings state otherwise; None: never.
        aged_by: the date or timestamp that determines a row's age.
        cluster_by: what `wirelake maintain` orders the rows of a day by, so that readers skip files.
        former_name: in lakes of layout 1; None: the same.
    """

    schema: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    keep_days: int | None = None
    aged_by: str = "date"
    cluster_by: tuple[str, ...] = ()
    former_name: str | None = None

    @property
    def former(self) -> Table | None:
        """The table under its name in lakes of layout 1; None: it has the same name there."""
        return replace(self, name=self.former_name, former_name=None) if self.former_name else None

    @property
    def full_name(self) -> str:
        """``schema.name``."""
        return f"{self.schema}.{self.name}"

    @property
    def path(self) -> str:
        """Path below the lake's root."""
        return f"{self.schema}/{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(c.name for c in self.columns)

    @property
    def sought_by(self) -> tuple[str, ...]:
        """Columns whose least and largest value in a file are kept, by which readers skip it; never texts of JSON."""
        times = ("ts", "minute", "first_ts", "last_ts", self.aged_by)
        wanted = dict.fromkeys((*self.key, *self.cluster_by, *times))
        return tuple(name for name in wanted if name in self.column_names and name not in self.partition_by)

    @property
    def by_difference(self) -> tuple[str, ...]:
        """Times and large whole numbers, of which files hold differences: rows beside each other differ by little."""
        return tuple(
            c.name for c in self.columns if c.type in {"bigint", "timestamp"} and c.name not in self.partition_by
        )

    def ddl(self) -> str:
        """The schema as a Spark DDL string, with comments."""
        return ", ".join(
            f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT {quoted(c.comment)}" for c in self.columns
        )


def optional(name: str, type_: str, comment: str, **former: Any) -> Column:
    """A column that may be null; ``former``: see :class:`Column`."""
    return Column(name, type_, comment, **former)


def required(name: str, type_: str, comment: str, **former: Any) -> Column:
    """A column that is never null; ``former``: see :class:`Column`."""
    return Column(name, type_, comment, nullable=False, **former)
