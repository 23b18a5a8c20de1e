"""The partitions that each fetch session holds: statements of silver → ``silver.fetch_sessions``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from decoder.kafka.extractors.fetch_sessions import Held, Part, SessionFetch, follow
from pipeline.analysis.fit import schema_of, table_of
from pipeline.analysis.safety.guard import contain
from pipeline.analysis.tables import Tables
from pipeline.tables import FETCH_SESSIONS

Values = tuple[Any, ...]
_EPOCH = date(1970, 1, 1)
_ROWS_OF_A_STATEMENT, _LEAST_ROWS = 4, 50_000
"""Rows that may be made of the statements given. A session of 10,000 partitions that continues for years says so in
some bytes a day, and would have 10,000 rows on each."""
OUTPUT = (
    "cluster", "server", "session_id", "date", "client", "client_id", "topic", "topic_id", "partition",
    "isolation_level", "first_us", "last_us", "fetch_offset", "fetches", "session_epoch", "is_open", "complete",
)  # fmt: skip
"""Of what :func:`follow_session` gives."""


class _Row(NamedTuple):
    """What a fetch of a session states of itself and of a partition, or (``carried``) what was held before."""

    server: str
    session_id: int
    cluster: str
    date: date
    ts_us: int
    exchange_id: str
    kind: str
    client: str
    client_id: str | None
    session_epoch: int
    error_code: int | None
    complete: bool
    part: Part


FETCH = _Row._fields[:-1]


def follow_session(session: Values, rows: Iterator[Values], most: int | None = None) -> Iterator[Values]:
    """Rows of ``OUTPUT`` of one session. What is carried comes first: it is of an earlier day."""
    clusters: dict[date, str] = {}
    carried: list[Held] = []
    noted = _noting_clusters(rows, clusters)
    for is_carried, of_source in groupby(noted, key=lambda row: row.kind == "carried"):
        if is_carried:
            carried = [_held(row) for row in of_source]
        else:
            for held in follow(_fetches(of_source), carried, most):
                yield (clusters[held.day], *session, held.day, *_values(held))


def _noting_clusters(rows: Iterator[Values], clusters: dict[date, str]) -> Iterator[_Row]:
    for values in rows:
        row = _Row._make([*values[: len(FETCH)], Part._make(values[len(FETCH) :])])
        clusters[row.date] = row.cluster
        yield row


def _values(held: Held) -> Values:
    return (
        held.client, held.client_id, held.topic, held.topic_id, held.partition, held.isolation_level, held.first_us,
        held.last_us, held.fetch_offset, held.fetches, held.session_epoch, held.is_open, held.complete,
    )  # fmt: skip


def _fetches(rows: Iterable[_Row]) -> Iterator[SessionFetch]:
    for _, of_one in groupby(rows, key=lambda row: (row.ts_us, row.exchange_id)):
        statements = list(of_one)
        head = next((row for row in statements if row.kind == "fetch_session"), None)
        if head is not None:
            parts = tuple(row.part for row in statements if row.kind != "fetch_session")
            yield SessionFetch(
                head.date, head.ts_us, head.client, head.client_id, head.session_epoch, bool(head.error_code), parts
            )


def _held(row: _Row) -> Held:
    part = row.part
    return Held(
        row.date, row.client, row.client_id, part.topic, part.topic_id, part.partition, part.isolation_level,
        row.ts_us, row.ts_us, part.offset, 0, row.session_epoch, True, row.complete,
    )  # fmt: skip


KINDS = ("fetched", "fetch_rejected", "fetch_forgotten")
"""What events state of partitions in a session."""
_NAMES = ", ".join(f'"{name}"' for name in FETCH if name not in ("ts_us", "complete"))
_PARTS = ", ".join(f'"{name}"' for name in Part._fields if name != "forgotten")
_STATEMENTS = f"""
    WITH stated AS (
        SELECT * FROM states
        WHERE kind = 'fetch_session' AND session_id IS NOT NULL AND session_epoch IS NOT NULL
        UNION ALL BY NAME
        SELECT * FROM events
        WHERE list_contains({list(KINDS)}, kind) AND session_id IS NOT NULL AND session_epoch IS NOT NULL
    ), timed AS (
        SELECT {_NAMES}, {_PARTS}, epoch_us(ts) AS ts_us, false AS complete, kind = 'fetch_forgotten' AS forgotten
        FROM stated
        UNION ALL BY NAME
        SELECT * EXCLUDE (first_ts, last_ts, fetch_offset, fetches, is_open), epoch_us(last_ts) AS ts_us,
            '' AS exchange_id, 'carried' AS kind, fetch_offset AS "offset", false AS forgotten
        FROM carried
    )
    SELECT {", ".join(f'"{name}"' for name in (*FETCH, *Part._fields))} FROM timed
    ORDER BY server, session_id, ts_us, exchange_id
"""


def fetch_sessions(events: pa.Table, states: pa.Table, carried: pa.Table | None = None) -> pa.Table:
    """Rows of ``silver.fetch_sessions``.

    Args:
        events, states: rows of ``silver.offset_events`` and ``state_events``; of a connection that two agents saw, one
            copy.
        carried: what sessions held before: the open rows of the last day before these.
    """
    before = schema_of(FETCH_SESSIONS).empty_table() if carried is None else carried
    tables = Tables({"events": events, "states": states, "carried": before})
    try:
        rows = tables.rows(_STATEMENTS)
    finally:
        tables.close()
    found: list[dict[str, Any]] = []
    for session, of_session in groupby(rows, key=attrgetter("server", "session_id")):
        most = max(_ROWS_OF_A_STATEMENT * len(rows), _LEAST_ROWS) - len(found)
        try:
            found += _rows(follow_session(session, iter(of_session), most))
        except Exception as error:
            contain(error, f"table {FETCH_SESSIONS.full_name}", f"fetch session {session[1]}")
    return table_of(found, FETCH_SESSIONS)


def _rows(of_session: Iterable[Values]) -> list[dict[str, Any]]:
    found = []
    for values in of_session:
        row = dict(zip(OUTPUT, values, strict=True))
        days = (row["date"] - _EPOCH).days
        found.append({**row, "date": days, "first_ts": row["first_us"], "last_ts": row["last_us"]})
    return found
