"""Rows of a table that are wanted: the same conditions for Arrow, DuckDB and Spark."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.storage.sinks import day_of
from pipeline.tables import Table


@dataclass(frozen=True, slots=True)
class TableScan:
    """Rows of a table.

    Attributes:
        from_day, before_day: those whose ``date`` is in between; the second is exclusive. None: no bound.
        since_us, before_us: those whose ``time`` is in between, µs since the epoch; the second is exclusive. None: no
            bound.
        time: a timestamp column.
        kinds: values of ``kind``; none: all.
        between: by column the least and the greatest value, both inclusive.
        present: columns that are not null.
        columns: that are wanted; none: all.
        once: of a connection that was seen several times, one copy.
        distinct: equal rows may come once.
    """

    table: Table
    from_day: date | None = None
    before_day: date | None = None
    since_us: int | None = None
    before_us: int | None = None
    time: str = "ts"
    kinds: Sequence[str] = ()
    between: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    present: Sequence[str] = ()
    columns: Sequence[str] = ()
    once: bool = False
    distinct: bool = False

    @classmethod
    def since(cls, table: Table, us: int, **more: Any) -> TableScan:
        """Rows of a table whose ``date`` is the day of its ``ts``, from a time on."""
        return cls(table, from_day=day_of(us), since_us=us, **more)

    @property
    def conditions(self) -> Iterator[Condition]:
        """What a row must pass."""
        bounds = (("date", ">=", self.from_day), ("date", "<", self.before_day))
        yield from (Condition(*one) for one in bounds if one[-1] is not None)
        times = (">=", self.since_us), ("<", self.before_us)
        yield from (Condition(self.time, sign, Micros(us)) for sign, us in times if us is not None)
        if self.kinds:
            yield Condition("kind", "in", list(self.kinds))
        for name, (least, greatest) in self.between.items():
            yield Condition(name, ">=", least)
            yield Condition(name, "<=", greatest)
        yield from (Condition(name, "is there", None) for name in self.present)


class Micros(NamedTuple):
    """A time, µs since the epoch."""

    us: int


class Condition(NamedTuple):
    """What must hold of a column; ``sign`` is one of ``_SIGNS``, ``in`` or ``is there``."""

    column: str
    sign: str
    value: Any


_SIGNS = {">=": operator.ge, "<": operator.lt, "<=": operator.le}


def in_arrow(wanted: TableScan) -> Any:
    """As an expression of Arrow; None if all rows are wanted."""
    conditions = [_in_arrow(one) for one in wanted.conditions]
    return reduce(operator.and_, conditions) if conditions else None


def _in_arrow(one: Condition) -> Any:
    column, value = pc.field(one.column), one.value
    if one.sign in _SIGNS:
        scalar = pa.scalar(value.us, pa.timestamp("us", "UTC")) if isinstance(value, Micros) else pa.scalar(value)
        return _SIGNS[one.sign](column, scalar)
    return column.isin(value) if one.sign == "in" else column.is_valid()


def in_spark(wanted: TableScan) -> Iterator[Column]:
    """As conditions of Spark."""
    for name, sign, value in wanted.conditions:
        column = F.col(name)
        if sign in _SIGNS:
            yield _SIGNS[sign](column, F.timestamp_micros(F.lit(value.us)) if isinstance(value, Micros) else value)
        else:
            yield column.isin(*value) if sign == "in" else column.isNotNull()


def in_duckdb(wanted: TableScan) -> str:
    """As SQL of DuckDB."""
    return " AND ".join(map(_in_duckdb, wanted.conditions)) or "true"


def _in_duckdb(one: Condition) -> str:
    name, value = f'"{one.column}"', one.value
    if one.sign in _SIGNS:
        return f"{name} {one.sign} {_literal(value)}"
    return f"{name} IN ({', '.join(map(_literal, value))})" if one.sign == "in" else f"{name} IS NOT NULL"


def _literal(value: object) -> str:
    if isinstance(value, Micros):
        return f"make_timestamptz({value.us})"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if isinstance(value, (bool, int)):
        return str(value)
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"
