"""How TCP connections went and ended: rows of ``bronze.gaps`` → ``silver.connections``.

A day of statements is taken in at once. A row takes the place of one of the same connection that knows less of it
(:func:`pipeline.analysis.connections.rank`), so that the result does not depend on how often a day is taken in, nor on
the order in which agents land theirs. Which of them are copies is looked at of all that the table holds of those days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.connections import connections
from pipeline.analysis.duplicates.counted_connections import OF_COUNTED, counted_by
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.tables import Tables
from pipeline.streaming.storage.change_log import first_us
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import day_of
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import CONNECTIONS, DUPLICATE_FLOWS, GAPS

_DAY = timedelta(days=1)
_FLOW = "coalesce(get_json_object(life, '$.flow_id'), connection_id)"
_OF_HELD = ("date", "flow_id", "seq", "counted_connection_id", "client_packets", "server_packets", *OF_COUNTED)
_RANK = "coalesce({0}.client_packets, 0) + coalesce({0}.server_packets, 0), {0}.seq, {0}.connection_id"
"""As :func:`pipeline.analysis.connections.rank`, in SQL."""
_BETTER = f"""
    SELECT n.* FROM new AS n LEFT JOIN held AS h USING (flow_id)
    WHERE h.flow_id IS NULL OR ({_RANK.format("n")}) > ({_RANK.format("h")})
"""  # noqa: S608 - our own text
_LEFT = """
    SELECT h.* FROM held AS h ANTI JOIN better USING (flow_id)
    WHERE flow_id IN (SELECT flow_id FROM new) OR client_isn IN (SELECT client_isn FROM new)
        OR connection_id IN (SELECT connection_id FROM others UNION SELECT counted_connection_id FROM others)
"""
"""What the table holds and keeps, whose state as a copy may have to be stated again."""


def refresh_connections(rows: LakeIO, since_us: int) -> None:
    """Take in what agents stated from ``since_us`` (µs since the epoch) on.

    A lake of an older release holds statements and no table: then all of them are taken in.
    """
    if rows.is_empty(CONNECTIONS):
        first = first_us(rows, GAPS)
        since_us = since_us if first is None else min(since_us, first)
    stated = TableScan.since(GAPS, since_us, present=("life",), columns=("date",), distinct=True)
    others = rows.read(TableScan(DUPLICATE_FLOWS))
    for day in sorted(pc.unique(rows.read(stated).column("date")).to_pylist()):
        _take_day(rows, day, max(since_us, 0) if day == day_of(since_us) else None, others)


def _take_day(rows: LakeIO, day: date, since_us: int | None, others: pa.Table) -> None:
    made = rows.derive(
        lambda tables: connections(tables["gaps"]),
        {"gaps": TableScan(GAPS, from_day=day, before_day=day + _DAY, since_us=since_us, present=("life",))},
        (_FLOW,),
        CONNECTIONS,
    )
    new = rows.as_arrow(made, CONNECTIONS.columns)
    near = _near(day, has_interim=pc.any(new.column("is_interim")).as_py() is True)
    held = pa.concat_tables([rows.read(replace(one, columns=_OF_HELD)) for one in near])
    tables = Tables({"new": new, "held": held, "others": others})
    try:
        better = fit(tables.table(_BETTER), CONNECTIONS)
        tables.add("better", better)
        left = tables.table(_LEFT)
    finally:
        tables.close()
    counted = counted_by(_in_us(better) + _in_us(left), others)
    moved = [
        one["flow_id"] for one in left.to_pylist() if counted.get(one["connection_id"]) != one["counted_connection_id"]
    ]
    taken = pa.concat_tables([_naming(some, counted) for some in (better, _whole(rows, near, moved))])
    days = pc.min_max(held.filter(pc.is_in(held.column("flow_id"), taken.column("flow_id"))).column("date")).as_py()
    if days["min"] is not None:
        within = {"date": (min(days["min"], day), max(days["max"], day))}
        rows.merge(taken, CONNECTIONS, "t.flow_id = s.flow_id", within)
    elif taken.num_rows:
        rows.append(taken, CONNECTIONS)


def _near(day: date, *, has_interim: bool) -> Sequence[TableScan]:
    """What the table holds of connections that a day may state again.

    Agents state the end of a connection within moments of each other; before that, one that continues may have been
    stated on any day.
    """
    until = None if has_interim else day + 2 * _DAY
    near = TableScan(CONNECTIONS, from_day=day - _DAY, before_day=until)
    return near, TableScan(CONNECTIONS, before_day=day - _DAY, present=("is_interim",))


def _in_us(some: pa.Table) -> list[dict[str, Any]]:
    """What of rows shows copies, with times in µs since the epoch."""
    some = some.select(OF_COUNTED)
    number = some.schema.get_field_index("first_ts")
    rows: list[dict[str, Any]] = some.set_column(number, "first_ts", some.column(number).cast(pa.int64())).to_pylist()
    return rows


def _naming(some: pa.Table, counted: Mapping[str, str]) -> pa.Table:
    """The rows with the connections that count in their place."""
    names = pa.array([counted.get(one) for one in some.column("connection_id").to_pylist()], pa.string())
    number = some.schema.get_field_index("counted_connection_id")
    return some.set_column(number, some.schema.field(number), names)


def _whole(rows: LakeIO, near: Iterable[TableScan], flows: Sequence[str]) -> pa.Table:
    """All columns of what the table holds of some connections."""
    if not flows:
        return schema_of(CONNECTIONS).empty_table()
    held = (rows.read(one) for one in near)
    wanted = pa.array(flows, pa.string())
    return pa.concat_tables([fit(some.filter(pc.is_in(some.column("flow_id"), wanted)), CONNECTIONS) for some in held])
