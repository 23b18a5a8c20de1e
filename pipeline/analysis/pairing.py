"""Pairs the halves of an exchange by ``exchange_id``; those that wait are ``pending``.

What is complete or given up goes by the capture's own time only:

* a response is paired with a request of the same id that is at most ``response_timeout`` older;
* a response that follows another one by itself (MongoDB's exhaust) is complete alone;
* a half is given up when its own connection has gone on for longer than ``response_timeout`` without the other, or when
  all connections together have gone on for longer than ``abandon_timeout``.

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
from decoder.model import FrameFlags
from decoder.protocols import names_of, protocols
from pipeline.analysis.columns.nullable import Numbers, at_places, bounds_of, truths, whole_array
from pipeline.analysis.errors import response_errors
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.hours import span_us
from pipeline.analysis.safety.guard import by_parts, contain
from pipeline.analysis.tables import Tables
from pipeline.lake.arrow import arrow_array, in_one_array, int_values, taken
from pipeline.tables import EXCHANGES

_CONTEXT = (
    "connection_id", "agent_id", "flow_id", "protocol", "client_ip", "client_port", "server_ip", "server_port",
    "api_key", "api_name", "api_version", "correlation_id",
)  # fmt: skip
_CLAMPED = int(FrameFlags.TIME_CLAMPED)


def _has(half: str, flag: FrameFlags) -> str:
    return f"{half}.flags & {int(flag)} <> 0"


def _first(direction: str) -> str:
    return (
        f"SELECT * FROM halves WHERE direction = '{direction}' "
        "QUALIFY row_number() OVER (PARTITION BY id ORDER BY seq) = 1"
    )


_REQUEST_STATUS = f"""CASE
    WHEN {_has("req", FrameFlags.NO_RESPONSE_EXPECTED)} THEN 'no_response_expected'
    WHEN {_has("req", FrameFlags.UNANSWERED)} OR epoch_us(req.ts) < expired_after THEN 'unanswered'
    ELSE 'pending' END"""
_RESPONSE_STATUS = f"""CASE
    WHEN {_has("res", FrameFlags.FOLLOWING_RESPONSE)} THEN 'following_response'
    WHEN {_has("res", FrameFlags.ORPHAN_RESPONSE)} OR epoch_us(res.ts) < expired_after THEN 'orphan_response'
    ELSE 'pending' END"""
_ID = "coalesce(exchange_id, connection_id || '/' || direction || '/' || seq)"
_CLOCK_COLUMNS = ["connection_id", "direction", "seq", "ts", "flags"]
_CLOCK = ", ".join(_CLOCK_COLUMNS)
_CLOCKS = f"SELECT {_CLOCK} FROM frames UNION ALL SELECT {_CLOCK} FROM earlier"
_KEEP_HEADERS = names_of(lambda protocol: protocol.keeps_headers)
_EXCHANGES = f"""
    WITH halves AS (
        SELECT *, {_ID} AS id FROM frames
    ), requests AS ({_first("request")}), responses AS ({_first("response")}),
    clocks AS (
        SELECT connection_id, greatest(
            arg_max(epoch_us(ts), seq) FILTER (direction = 'request' AND flags & {_CLAMPED} = 0),
            arg_max(epoch_us(ts), seq) FILTER (direction = 'response' AND flags & {_CLAMPED} = 0)
        ) AS clock
        FROM clock_frames GROUP BY connection_id
    ), deadlines AS (
        SELECT connection_id,
            greatest(clock - $answer_us, (SELECT max(clock) FROM clocks) - $abandon_us) AS expired_after
        FROM clocks
    ), matched AS (
        SELECT req, res, (req.flags | res.flags) & {_CLAMPED} <> 0 AS is_clamped,
            res.ts IS NOT NULL AND req.ts IS NOT NULL AND epoch_us(res.ts) > epoch_us(req.ts) + $answer_us
                AND NOT is_clamped AS is_late
        FROM requests AS req FULL JOIN responses AS res ON req.id = res.id
    ), each AS (
        SELECT req, res, is_clamped FROM matched WHERE NOT is_late
        UNION ALL SELECT req, NULL, false FROM matched WHERE is_late
        UNION ALL SELECT NULL, res, false FROM matched WHERE is_late
    ), timed AS (
        SELECT each.*, expired_after FROM each
        JOIN deadlines ON deadlines.connection_id = coalesce(req.connection_id, res.connection_id)
    ), spanned AS (
        SELECT *, CASE WHEN req.id IS NOT NULL AND res.id IS NOT NULL AND NOT is_clamped
            THEN greatest(epoch_us(res.ts) - epoch_us(req.ts_end), 0) END AS latency
        FROM timed
    )
    SELECT
        CASE WHEN req.id IS NULL AND NOT ({_has("res", FrameFlags.ORPHAN_RESPONSE)})
            AND NOT ({_has("res", FrameFlags.FOLLOWING_RESPONSE)}) THEN res.id || '/late'
            ELSE coalesce(req.id, res.id) END AS exchange_id,
        {", ".join(f"coalesce(req.{name}, res.{name}) AS {name}" for name in _CONTEXT)},
        req.client_id AS client_id,
        coalesce(req.ts, res.ts) AS ts,
        make_timestamp(epoch_us(coalesce(req.ts, res.ts)))::DATE AS date,
        req.ts AS request_ts, res.ts AS response_ts,
        latency AS latency_us,
        CASE WHEN latency IS NOT NULL AND NOT ({_has("res", FrameFlags.AFTER_GAP)})
            THEN least(latency, greatest(coalesce(res.idle_us, latency), 0)) END AS service_us,
        req.size AS request_size, res.size AS response_size,
        CASE WHEN res.id IS NULL THEN {_REQUEST_STATUS} WHEN req.id IS NULL THEN {_RESPONSE_STATUS}
            ELSE 'paired' END AS status,
        req.decode_status AS request_status, res.decode_status AS response_status,
        req.flags AS request_flags, res.flags AS response_flags, req.place AS request_place, res.place AS response_place
    FROM spanned
"""
_SLIM = (
    *_CONTEXT, "exchange_id", "direction", "seq", "ts", "ts_end", "flags", "size", "idle_us", "client_id",
    "decode_status",
)  # fmt: skip
"""What the query reads of frames. Texts of bodies stay out of it: they are taken once it has found both halves."""
_TEXTS = ("body", "embedded", "header")


def exchanges(
    frames: pa.Table, response_timeout: timedelta, abandon_timeout: timedelta, earlier: pa.Table | None = None
) -> pa.Table:
    """Rows of ``silver.exchanges``, and behind them those whose ``status`` is ``pending``.

    Args:
        frames: rows of ``bronze.frames``; each frame once. Should an exchange id repeat in one direction, the first
            frame wins; a frame that the agent could not number stands for itself.
        response_timeout, abandon_timeout: see StreamSettings.
        earlier: the newest frames of each connection that came before these (:func:`newest`); they are not paired.
    """
    before = frames.slice(0, 0) if earlier is None else earlier
    clocks = pa.concat_tables([some.select(_CLOCK_COLUMNS) for some in (frames, before)])

    def pair(some: pa.Table) -> pa.Table:
        return _paired(some, clocks, response_timeout, abandon_timeout)

    found = by_parts(f"table {EXCHANGES.full_name}", pair, frames, "connection_id")
    return pa.concat_tables(found) if found else schema_of(EXCHANGES).empty_table()


def _paired(frames: pa.Table, clocks: pa.Table, response_timeout: timedelta, abandon_timeout: timedelta) -> pa.Table:
    tables = Tables({"frames": _with_places(frames.select(_SLIM)), "clock_frames": clocks})
    try:
        found = tables.table(_EXCHANGES, answer_us=span_us(response_timeout), abandon_us=span_us(abandon_timeout))
    finally:
        tables.close()
    is_pending = pc.equal(found.column("status"), "pending")
    found = pa.concat_tables([found.filter(pc.invert(is_pending)), found.filter(is_pending)])
    paired = _with_texts(found, frames)
    for name, errors in zip(("error_codes", "error_names"), _errors_of(paired), strict=True):
        paired = paired.append_column(name, errors)
    return fit(paired, EXCHANGES)


def _with_texts(found: pa.Table, frames: pa.Table) -> pa.Table:
    """What the query gives, with the texts of both halves in place of where their frames are."""
    keeps_header = pc.is_in(found.column("protocol"), arrow_array(_KEEP_HEADERS, pa.string()))
    for name in _TEXTS:
        texts = in_one_array(frames.column(name))
        for half in ("request", "response"):
            places = found.column(f"{half}_place")
            wanted = pc.if_else(keeps_header, places, None) if name == "header" else places
            found = found.append_column(f"{half}_{name}", taken(texts, whole_array(wanted)))
    return found.drop_columns(["request_place", "response_place"])


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
        yield at_places(arrow_array(lists, schema_of(EXCHANGES).field(name).type), places)


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
    """Which texts hold a mark that does not go on as ``followed`` does; several times as fast as counting both."""
    pattern = re.compile(re.escape(mark.encode()) + b"(?!" + re.escape(followed.removeprefix(mark).encode()) + b")")
    found = [np.zeros(0, np.bool_)]
    for chunk in texts.chunks:
        bounds, data = bounds_of(chunk)
        places = [match.start() for match in pattern.finditer(data, int(bounds[0]), int(bounds[-1]))]
        found.append(np.zeros(len(chunk), np.bool_))
        found[-1][np.searchsorted(bounds, places, side="right") - 1] = True
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
            SELECT * FROM ({_CLOCKS}) WHERE flags & {_CLAMPED} = 0 AND epoch_us(ts) > {int(since_us)}
            QUALIFY row_number() OVER (PARTITION BY connection_id, direction ORDER BY seq DESC) = 1
        """).cast(frames.select(_CLOCK_COLUMNS).schema)  # DuckDB names UTC as the machine does
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
            halves AS (SELECT *, {_ID} AS id FROM frames),
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
    slim = _with_places(frames.select(["exchange_id", "connection_id", "direction", "seq"]))
    tables = Tables({"pending": pending.select(["exchange_id", "request_ts"]), "frames": slim})
    try:
        found = tables.table(f"""
            WITH halves AS (SELECT *, {_ID} AS id FROM frames)
            SELECT halves.place FROM halves JOIN pending ON {_WAITS}
            QUALIFY row_number() OVER (PARTITION BY pending.exchange_id ORDER BY halves.seq) = 1
        """)
    finally:
        tables.close()
    # Not by number: bodies of all frames would be put together first.
    waits = np.zeros(frames.num_rows, np.bool_)
    waits[int_values(found.column("place").combine_chunks())] = True
    return frames.filter(Numbers.all_known(waits).arrow(pa.bool_()))


def _with_places(frames: pa.Table) -> pa.Table:
    """Frames, and beside each its number: what is found of few columns says so which rows are meant."""
    return frames.append_column("place", Numbers.all_known(np.arange(frames.num_rows)).arrow(pa.int64()))
