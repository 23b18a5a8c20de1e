"""Pairs the halves of an exchange by ``exchange_id``; those that wait are ``pending``.

What is complete or given up goes by the capture's own time only:

* a response is paired with a request of the same id that is at most ``response_timeout`` older;
* a response that follows another one by itself (MongoDB's exhaust) is complete alone;
* a half is given up when its own connection has continued for longer than ``response_timeout`` without the other, or
when
  all connections together have continued for longer than ``abandon_timeout``.

A time that the capture did not give (TIME_CLAMPED) means nothing: such a frame makes no other one old, is not late, and
has no latency.

A server answers the requests of one connection one after the other, so that a request waits for the answers before it:
its service begins when the response before has left. Only the agent sees all of a connection in order: ``idle_us``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools
from decoder.protocols import protocols
from pipeline.analysis.bodies import Bring, texts_of, way_of, with_texts
from pipeline.analysis.columns.nullable import Numbers, at_places, bounds_of, truths
from pipeline.analysis.columns.numbering import with_places
from pipeline.analysis.errors import response_errors
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.hours import span_us
from pipeline.analysis.matching import CLAMPED, CLOCK_COLUMNS, CONTEXT, matched
from pipeline.analysis.rules.bodies_read import MARK, are_read
from pipeline.analysis.safety.guard import by_parts, contain
from pipeline.analysis.tables import Tables
from pipeline.lake.arrow import arrow_array, int_values
from pipeline.tables import EXCHANGES, EXCHANGES_WITH_BODIES, FRAME_ID_SQL

_CLOCK = ", ".join(CLOCK_COLUMNS)
_OF_ONE = ("connection_id", "direction")
_NEWEST = ", ".join(name if name in _OF_ONE else f"arg_max({name}, seq) AS {name}" for name in CLOCK_COLUMNS)
_CLOCKS = f"SELECT {_CLOCK} FROM frames UNION ALL SELECT {_CLOCK} FROM earlier"
_SLIM = (
    *CONTEXT, "exchange_id", "direction", "seq", "ts", "ts_end", "flags", "size", "idle_us", "client_id",
    "decode_status",
)  # fmt: skip
"""What halves are matched by. Texts of bodies stay out of it: they are taken once both halves are found."""


def exchanges(
    frames: pa.Table,
    response_timeout: timedelta,
    abandon_timeout: timedelta,
    earlier: pa.Table | None = None,
    *,
    copies_texts: bool = True,
) -> pa.Table:
    """Exchanges with their bodies, and behind them those whose ``status`` is ``pending``.

    Args:
        frames: rows of ``bronze.frames``; each frame once. Should an exchange id repeat in one direction, the first
            frame wins; a frame that the agent could not number stands for itself.
        response_timeout, abandon_timeout: see StreamSettings.
        earlier: the newest frames of each connection that came before these (:func:`newest`); they are not paired.
        copies_texts: if not, and one array can hold the texts of ``frames``, columns of texts point to these
            (:func:`pipeline.lake.arrow.pointing_to`); ``with_plain_texts`` there copies what is to stay.
    """
    before = frames.slice(0, 0) if earlier is None else earlier
    clocks = pa.concat_tables([some.select(CLOCK_COLUMNS) for some in (frames, before)])
    bring = way_of(frames, copies_texts=copies_texts)

    def pair(some: pa.Table) -> pa.Table:
        return _paired(some, clocks, response_timeout, abandon_timeout, bring)

    found = by_parts(f"table {EXCHANGES.full_name}", pair, frames, "connection_id")
    return pa.concat_tables(found) if found else schema_of(EXCHANGES_WITH_BODIES).empty_table()


def _paired(
    frames: pa.Table, clocks: pa.Table, response_timeout: timedelta, abandon_timeout: timedelta, bring: Bring
) -> pa.Table:
    found = matched(frames.select(_SLIM), clocks, span_us(response_timeout), span_us(abandon_timeout))
    order = np.argsort(found.is_pending, kind="stable")
    rows = found.rows
    if found.is_pending.any():
        rows = rows.take(Numbers.all_known(order).arrow(pa.int64()))
    texts = texts_of(rows, frames, {"request": found.requests[order], "response": found.responses[order]}, bring)
    paired = rows.append_column("response_body", texts["response_body"])
    for name, errors in zip(("error_codes", "error_names"), _errors_of(paired), strict=True):
        rows = rows.append_column(name, errors)
    whole = with_texts(fit(rows, EXCHANGES_WITH_BODIES), texts)
    return with_texts(whole, {MARK: Numbers.all_known(are_read(whole)).arrow(pa.bool_())})


def _errors_of(paired: pa.Table) -> Iterator[pa.Array]:
    """Codes and names of the errors of each response; only those are read that may name one."""
    doubtful = may_have_errors(paired)
    some = paired.select(["exchange_id", "protocol", "response_body"]).filter(
        Numbers.all_known(doubtful).arrow(pa.bool_())
    )
    read = [_errors(*row) for row in zip(*(column.to_pylist() for column in some.columns), strict=True)]
    places = np.where(doubtful, np.cumsum(doubtful), 0)
    for number, name in enumerate(("error_codes", "error_names")):
        lists = [[], *(None if one is None else [error[number] for error in one] for one in read)]
        yield at_places(arrow_array(lists, schema_of(EXCHANGES_WITH_BODIES).field(name).type), places)


def may_have_errors(paired: pa.Table) -> Bools:
    """Where a search of a response's text does not show that it names none."""
    protocol, body = paired.column("protocol"), paired.column("response_body")
    found = np.ones(paired.num_rows, np.bool_)
    for name, one in protocols().items():
        if one.error_marks is not None:
            its = truths(pc.equal(protocol, name))
            found[its] = (truths(pc.is_null(body)) | _hold_another(body, *one.error_marks))[its]
    return found


def _hold_another(texts: pa.ChunkedArray, mark: str, followed: str) -> Bools:
    """Which texts hold a mark that does not continue as ``followed`` does; several times as fast as counting both."""
    pattern = re.compile(re.escape(mark.encode()) + b"(?!" + re.escape(followed.removeprefix(mark).encode()) + b")")
    found = [np.zeros(0, np.bool_)]
    for chunk in texts.chunks:
        pointed_to = isinstance(chunk, pa.DictionaryArray)
        whole = chunk.dictionary if pointed_to else chunk
        bounds, data = bounds_of(whole)
        places = [match.start() for match in pattern.finditer(data, int(bounds[0]), int(bounds[-1]))]
        holds = np.zeros(max(len(whole), 1), np.bool_)
        holds[np.searchsorted(bounds, places, side="right") - 1] = True
        found.append(holds[int_values(chunk.indices.fill_null(0))] if pointed_to else holds[: len(whole)])
    return np.concatenate(found)


def _errors(exchange_id: str, protocol: str, body: str | None) -> list[tuple[int, str]] | None:
    try:
        return response_errors(protocol, body)
    except Exception as error:
        contain(error, "errors of a response", exchange_id)
        return None


def completed(rows: pa.Table) -> pa.Table:
    """Those that wait for no other half."""
    return _where(rows, ~_waits(rows))


def pending(rows: pa.Table) -> pa.Table:
    """Those that do."""
    return _where(rows, _waits(rows))


def _waits(rows: pa.Table) -> Bools:
    return truths(pc.equal(rows.column("status"), "pending"))


def _where(rows: pa.Table, wanted: Bools) -> pa.Table:
    """Rows that are wanted; without a copy where they follow each other, as :func:`exchanges` puts them."""
    places = np.flatnonzero(wanted)
    if not len(places) or places[-1] - places[0] == len(places) - 1:
        return rows.slice(places[0] if len(places) else 0, len(places))
    return rows.filter(Numbers.all_known(wanted).arrow(pa.bool_()))


def newest(frames: pa.Table, earlier: pa.Table, since_us: int) -> pa.Table:
    """By connection and direction when the newest frame came, of those that came after ``since_us``.

    Args:
        frames: rows of ``bronze.frames``.
        earlier: what this gave of those before them; of the first, no rows of ``bronze.frames``.
        since_us: µs since the epoch.
    """
    tables = Tables({"frames": frames, "earlier": earlier})
    try:
        return tables.table(f"""
            SELECT {_NEWEST} FROM ({_CLOCKS}) WHERE flags & {CLAMPED} = 0 AND epoch_us(ts) > {int(since_us)}
            GROUP BY connection_id, direction
        """).cast(frames.select(CLOCK_COLUMNS).schema)  # DuckDB names UTC as the machine does
    finally:
        tables.close()


HALF = "half_"
"""Begins the names of a half's columns in what :func:`with_halves` gives."""


_WAITS = """
    regexp_replace(pending.exchange_id, '/late$', '') = halves.id
    AND halves.direction = CASE WHEN pending.request_ts IS NULL THEN 'response' ELSE 'request' END
"""
"""Which half of an exchange is pending. The other one may be complete: a response that came too late has lost it."""


def with_halves(paired: pa.Table, frames: pa.Table) -> pa.Table:
    """Exchanges, and beside those that are ``pending`` the columns of the frame that still waits."""
    waiting = ", ".join(f'halves."{name}" AS "{HALF}{name}"' for name in frames.column_names)
    tables = Tables({"paired": paired, "frames": frames})
    try:
        return tables.table(f"""
            WITH pending AS (SELECT * FROM paired WHERE status = 'pending'),
            halves AS (SELECT *, {FRAME_ID_SQL} AS id FROM frames),
            waiting AS (
                SELECT pending.*, {waiting} FROM pending JOIN halves ON {_WAITS}
                QUALIFY row_number() OVER (PARTITION BY pending.exchange_id ORDER BY halves.seq) = 1
            )
            SELECT * FROM paired WHERE status <> 'pending' UNION ALL BY NAME SELECT * FROM waiting
        """)
    finally:
        tables.close()


def halves_of(pending: pa.Table, frames: pa.Table) -> pa.Table:
    """The frames of exchanges that are ``pending``, in their order."""
    if not pending.num_rows:
        return frames.slice(0, 0)
    slim = with_places(frames.select(["exchange_id", "connection_id", "direction", "seq"]))
    tables = Tables({"pending": pending.select(["exchange_id", "request_ts"]), "frames": slim})
    try:
        found = tables.table(f"""
            WITH halves AS (SELECT *, {FRAME_ID_SQL} AS id FROM frames)
            SELECT halves.place FROM halves JOIN pending ON {_WAITS}
            QUALIFY row_number() OVER (PARTITION BY pending.exchange_id ORDER BY halves.seq) = 1
        """)
    finally:
        tables.close()
    # Not by number: bodies of all frames would be put together first.
    waits = np.zeros(frames.num_rows, np.bool_)
    waits[int_values(found.column("place").combine_chunks())] = True
    return frames.filter(Numbers.all_known(waits).arrow(pa.bool_()))
