"""What became of connections whose frames do not show it: the agent's rows about them, read and counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import CONNECTION
from pipeline.analysis.tables import IS_CONNECTION, Tables, address

TROUBLES: Final = ("refused", "unanswered", "silent", "other", "spoke")
"""How connections end that rules look at; there are also ``served`` (nothing shows that its frames do not) and
``unknown``."""

SAME_US: Final = 2_000_000
"""Two agents that see one connection begin do so within this time, µs."""


@dataclass(frozen=True, slots=True)
class Life:
    """A connection, or several of which only the number is known. Times are µs since the epoch.

    Attributes:
        how: ``refused``, ``unanswered`` (no SYN was answered), ``silent`` (no data), ``other`` (no Kafka or MongoDB)
            or ``spoke``.
        server: address and port.
        connections: how many; of more than one neither the client nor how they ended is known.
        closed_by, reset_by: ``client`` or ``server``; None if nobody was seen to.
        unanswered: requests without a response.
        asks, answers: what client and server speak, if that is neither Kafka nor MongoDB.
        alert: who ended a TLS handshake with which alert.
        server_name: whom the client asked for by TLS.
        sent_again, waiting: of client and server the segments sent once more, and the bytes never acknowledged.
        stalled_us: for how long client and server asked to be sent nothing, µs.
        syns: how often the client asked for a connection.
        state: in what a connection that speaks ended: ``asking``, ``answering``, ``idle`` or ``unknown``.
    """

    connection_id: str
    how: str
    opened: str
    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    server: str
    began_us: int
    ended_us: int
    connections: int
    closed_by: str | None
    reset_by: str | None
    unanswered: int
    asks: str
    answers: str
    alert: str
    server_name: str
    sent_again: tuple[int, int] = (0, 0)
    waiting: tuple[int, int] = (0, 0)
    stalled_us: tuple[int, int] = (0, 0)
    syns: int = 0
    state: str = ""


def lives(tables: Tables, gaps: str = "gaps") -> list[Life]:
    """Of each connection the newest row, in the order in which they began; what two agents saw counts once.

    Args:
        tables: rows of ``bronze.gaps``.
        gaps: by which name.
    """
    rows = tables.rows(f"""
        SELECT connection_id, arg_max(life, seq) AS life FROM {gaps} WHERE {IS_CONNECTION} AND life IS NOT NULL
            AND (NOT starts_with(life, '{{"how":"served"') OR contains(life, '"stalled_us":'))
        GROUP BY connection_id ORDER BY connection_id
    """)
    read = [life for row in rows if (life := _read(row.connection_id, row.life)) is not None]
    read = [life for life in read if life.how in TROUBLES or any(life.stalled_us)]
    return list(_once(sorted(read, key=lambda one: (one.began_us, one.connection_id))))


def are_in(gaps: pa.Table) -> bool:
    """Whether rows of ``bronze.gaps`` state what became of a connection."""
    is_one, life = pc.equal(gaps.column("method"), CONNECTION), gaps.column("life")
    for how in ("served", "unknown"):
        is_one = pc.and_(is_one, pc.invert(pc.fill_null(pc.starts_with(life, f'{{"how":"{how}"'), fill_value=False)))
    return bool(pc.any(is_one).as_py())


def _read(connection_id: str, text: str) -> Life | None:
    """None: it does not make sense."""
    try:
        values: dict[str, Any] = orjson.loads(text)
        ip, port = str(values["server_ip"]), int(values["server_port"])
        return Life(
            connection_id, str(values["how"]), str(values.get("opened", "unknown")), str(values.get("client_ip", "")),
            int(values.get("client_port", 0)), ip, port, address(ip, port),
            int(values["began_us"]), int(values["ended_us"]), int(values.get("connections", 1)),
            values.get("closed_by"), values.get("reset_by"), int(values.get("unanswered", 0)),
            str(values.get("asks", "")),
            str(values.get("answers", "")), str(values.get("alert", "")), str(values.get("server_name", "")),
            _pair(values.get("again")), _pair(values.get("unacknowledged")), _pair(values.get("stalled_us")),
            int(values.get("syns", 0)),
            str(values.get("state", "")),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _pair(of: Any) -> tuple[int, int]:
    """What is stated of client and server; 0 where it is not."""
    return (0, 0) if of is None else (int(of[0]), int(of[1]))


def _once(some: Iterable[Life]) -> Iterator[Life]:
    began: dict[tuple[str, int, str], int] = {}
    for one in some:
        ends = one.client_ip, one.client_port, one.server
        if one.connections == 1 and one.began_us - began.get(ends, -SAME_US) < SAME_US:
            continue
        began[ends] = one.began_us
        yield one
