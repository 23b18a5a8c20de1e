"""How did TCP connections go, and end? Rows of ``bronze.gaps`` → ``silver.connections``.

A day of statements is taken in at once. A row takes the place of one of the same connection that knows less of it
(:func:`pipeline.analysis.connections.rank`), so that the result does not depend on how often a day is taken in, nor on
the order in which agents land theirs.
"""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.analysis.connections import connections
from pipeline.analysis.fit import fit
from pipeline.analysis.tables import Tables
from pipeline.streaming.storage.news import first_us
from pipeline.streaming.storage.rows import Rows
from pipeline.streaming.storage.sinks import day_of
from pipeline.streaming.storage.wanted import Wanted
from pipeline.tables import CONNECTIONS, COPIES, GAPS

_DAY = timedelta(days=1)
_FLOW = "coalesce(get_json_object(life, '$.flow_id'), connection_id)"
_OF_RANK = (
    "date", "flow_id", "connection_id", "seq", "counted_connection_id", "client_packets", "server_packets",
)  # fmt: skip
_RANK = "coalesce({0}.client_packets, 0) + coalesce({0}.server_packets, 0), {0}.seq, {0}.connection_id"
"""As :func:`pipeline.analysis.connections.rank`, in SQL."""


def refresh_connections(rows: Rows, since_us: int) -> None:
    """Take in what agents stated from ``since_us`` (µs since the epoch) on.

    A lake of an older release holds statements and no table: then all of them are taken in.
    """
    if rows.is_empty(CONNECTIONS):
        first = first_us(rows, GAPS)
        since_us = since_us if first is None else min(since_us, first)
    stated = Wanted.since(GAPS, since_us, present=("life",), columns=("date",), distinct=True)
    others = rows.read(Wanted(COPIES))
    for day in sorted(pc.unique(rows.read(stated).column("date")).to_pylist()):
        _take_day(rows, day, max(since_us, 0) if day == day_of(since_us) else None, others)


def _take_day(rows: Rows, day: date, since_us: int | None, others: pa.Table) -> None:
    made = rows.derive(
        lambda tables: connections(tables["gaps"], tables["others"]),
        {"gaps": Wanted(GAPS, from_day=day, before_day=day + _DAY, since_us=since_us, present=("life",))},
        (_FLOW,),
        CONNECTIONS,
        {"others": others},
    )
    new = rows.as_arrow(made, CONNECTIONS.columns)
    held = _held(rows, day, has_interim=pc.any(new.column("is_interim")).as_py() is True)
    tables = Tables({"new": new, "held": held})
    try:
        better = f"({_RANK.format('n')}) > ({_RANK.format('h')})"
        is_equal = f"({_RANK.format('n')}) = ({_RANK.format('h')})"
        is_moved = "n.counted_connection_id IS DISTINCT FROM h.counted_connection_id"
        joined = f"""
            FROM new AS n LEFT JOIN held AS h USING (flow_id)
            WHERE h.flow_id IS NULL OR {better} OR {is_equal} AND {is_moved}
        """
        taken = fit(tables.table(f"SELECT n.* {joined}"), CONNECTIONS)
        ((before, after),) = tables.rows(f"SELECT min(h.date) AS before, max(h.date) AS after {joined}")
    finally:
        tables.close()
    if before is not None:
        within = {"date": (min(before, day), max(after, day))}
        rows.merge(taken, CONNECTIONS, "t.flow_id = s.flow_id", within)
    elif taken.num_rows:
        rows.append(taken, CONNECTIONS)


def _held(rows: Rows, day: date, *, has_interim: bool) -> pa.Table:
    """What the table holds of connections that a day may state again.

    Agents state the end of a connection within moments of each other; before that, one that goes on may have been
    stated on any day.
    """
    until = None if has_interim else day + 2 * _DAY
    near = Wanted(CONNECTIONS, from_day=day - _DAY, before_day=until, columns=_OF_RANK)
    going_on = Wanted(CONNECTIONS, before_day=day - _DAY, present=("is_interim",), columns=_OF_RANK)
    return pa.concat_tables([rows.read(near), rows.read(going_on)])
