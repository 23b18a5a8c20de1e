"""What became of connections whose frames do not show it, as rules read it of ``silver.connections``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pipeline.analysis.icmp import is_refusal
from pipeline.analysis.tables import ADDRESS, Tables

UNSPOKEN: Final = ("refused", "unanswered", "silent", "other")
"""How connections end that carry no message of Kafka or MongoDB."""

TROUBLES: Final = (*UNSPOKEN, "spoke")
"""How connections end that rules look at; there are also ``served`` (nothing shows that its frames do not) and
``unknown``."""

SAME_US: Final = 2_000_000
"""Two agents that see one connection begin do so within this time, µs."""


class Report(NamedTuple):
    """What ICMP errors state of packets of a connection.

    Attributes:
        text: in words.
        kind, code: type and code of the messages.
        by: address of who sent the first.
        of: ``client`` or ``server``: whose packets.
        mtu: bytes that a packet may have there; None where it is not stated.
    """

    text: str
    kind: int
    code: int
    by: str
    of: str
    mtu: int | None

    @property
    def is_refusal(self) -> bool:
        """Whether somebody does not want the packets, rather than that they found no way."""
        return is_refusal(self.kind, self.code, is_v6=":" in self.by)


@dataclass(frozen=True, slots=True)
class Life:
    """A connection, or several counted together. Times are µs since the epoch.

    Attributes:
        how: ``refused``, ``unanswered`` (no SYN was answered), ``silent`` (no data), ``other`` (no Kafka or MongoDB)
            or ``spoke``.
        server: address and port.
        connections: how many; of more than one neither the client nor how they ended is known.
        closed_by, reset_by: ``client`` or ``server``; None if neither was seen to.
        unanswered: requests without a response.
        asks, answers: what client and server speak, if that is neither Kafka nor MongoDB.
        alert: who ended a TLS handshake with which alert.
        server_name: whom the client asked for by TLS.
        sent_again, waiting: of client and server the segments sent once more, and the bytes never acknowledged.
        stalled_us: for how long client and server asked to be sent nothing, µs.
        syns: how often the client asked for a connection.
        state: in what a connection that speaks ended: ``asking``, ``answering``, ``idle`` or ``unknown``.
        speaks: what is spoken, as the agent recognised it.
        tls_offered, tls_version: the newest TLS version that the client offers, and the one that the server chose.
        sent, packets: bytes and packets of client and server.
        isn: initial sequence numbers of client and server; None where no SYN showed it.
        icmp: what ICMP errors state of its packets; None if none was captured.
        is_copy: whether another one counts in its place.
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
    tls_offered: str = ""
    tls_version: str = ""
    speaks: str = ""
    sent: tuple[int, int] = (0, 0)
    packets: tuple[int, int] = (0, 0)
    isn: tuple[int | None, int | None] = (None, None)
    icmp: Report | None = None
    is_copy: bool = False


def lives(tables: Tables, name: str = "connections") -> list[Life]:
    """What rules look at, in the order in which it began, without copies. Arguments as of :func:`all_lives`."""
    return once(all_lives(tables, name))


def all_lives(tables: Tables, name: str = "connections") -> list[Life]:
    """What rules look at, in the order in which it began, copies among it.

    Args:
        tables: rows of ``silver.connections``.
        name: by which name.
    """
    rows = tables.rows(f"""
        SELECT connection_id, how, opened, coalesce(client_ip, '') AS client_ip,
            coalesce(client_port, 0) AS client_port, server_ip, server_port, {ADDRESS["server"]} AS server,
            epoch_us(first_ts) AS began_us, epoch_us(last_ts) AS ended_us, connections, closed_by, reset_by,
            coalesce(unanswered, 0) AS unanswered, coalesce(asks, '') AS asks, coalesce(answers, '') AS answers,
            coalesce(alert, '') AS alert, coalesce(server_name, '') AS server_name, {_pair("sent_again")},
            {_pair("unacknowledged")}, {_pair("stalled_us")}, coalesce(syns, 0) AS syns, coalesce(state, '') AS state,
            coalesce(tls_offered, '') AS tls_offered, coalesce(tls_version, '') AS tls_version,
            coalesce(speaks, '') AS speaks, {_pair("bytes")}, {_pair("packets")}, (client_isn, server_isn) AS isn,
            CASE WHEN icmp IS NOT NULL
                THEN (icmp, icmp_type, icmp_code, icmp_by, icmp_of, icmp_mtu) END AS reported,
            counted_connection_id IS NOT NULL AS is_copy
        FROM {name}
        WHERE how IN (SELECT unnest($troubles)) OR how <> 'unknown' AND client_stalled_us + server_stalled_us > 0
        ORDER BY began_us, connection_id
    """, troubles=list(TROUBLES))  # fmt: skip
    return [Life(*row._replace(reported=None if row.reported is None else Report(*row.reported))) for row in rows]


def _pair(name: str) -> str:
    """Of client and server, as SQL; 0 where it is not known."""
    return f"(coalesce(client_{name}, 0), coalesce(server_{name}, 0)) AS {name}"


def once(some: Sequence[Life]) -> list[Life]:
    """All without copies, and without those that begin within moments of another one and have its ends."""
    by_ends: dict[tuple[str, int, str], Life] = {}
    found: list[Life] = []
    for one in some:
        if one.connections > 1:
            found.append(one)
            continue
        ends = one.client_ip, one.client_port, one.server
        before = by_ends.get(ends)
        if one.is_copy or (before is not None and _is_same(one, before)):
            continue
        by_ends[ends] = one
        found.append(one)
    return found


def _is_same(one: Life, before: Life) -> bool:
    """Whether a connection with the same ends is this one; a port that is used again has other numbers."""
    is_near = one.began_us - before.began_us < SAME_US
    return is_near and all(
        own is None or other is None or own == other for own, other in zip(one.isn, before.isn, strict=True)
    )
