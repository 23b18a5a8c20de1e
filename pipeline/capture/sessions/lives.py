"""Rows of what became of connections, where their frames do not show it: rows of ``gaps`` with a ``life``.

A connection of which all is in its frames has none. Of a flood or a scan the first have a row each, the others are
counted, by server and by how they ended: neither the memory nor the landing zone may grow with them.
"""

from __future__ import annotations

from typing import Any

import orjson

from decoder.model import CONNECTION, Gap
from pipeline.capture.sessions.labels import connection_id
from pipeline.capture.sessions.recognition import readable
from pipeline.capture.sessions.session import Session
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.life import opened, unacknowledged

MOST_OF_A_KIND, MOST_ROWS = 100, 1_000
"""Connections that have a row each within PERIOD_US: to one server with one end, and all together."""

MOST_KINDS = 500
"""Servers and ends by which the others are counted."""

PERIOD_US = 60_000_000
"""So often what was counted is reported, µs of capture time."""

WAITED_US = 3_000_000
"""A SYN that nothing answers for so long was sent again twice: by then it is no delay of the network, µs."""

MANY_SYNS = 3
"""SYNs of one connection from which on it is reported that nothing answers."""

ORDINAL = 1 << 40
"""``seq`` of these rows begins here: no direction has so many frames."""

_ENDS = ("client", "server")


class _Counted:
    """Connections of one kind that have no row of their own."""

    __slots__ = ("first_us", "last_us", "number")

    def __init__(self, first_us: int) -> None:
        self.number = 0
        self.first_us = self.last_us = first_us


class Lives:
    """Makes the rows of one agent.

    Args:
        agent_id: its name.
    """

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._rows: list[Gap] = []
        self._since: int | None = None
        self._kept: dict[tuple[str, int, str], int] = {}
        self._counted: dict[tuple[str, int, str], _Counted] = {}
        self._own = 0

    def take(self) -> list[Gap]:
        """The rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def look(self, connection: Connection, ts: int) -> None:
        """A SYN or a RST has come: report a connection that is refused, or that nothing answers, while that is new."""
        life = connection.life
        if life.is_reported or (connection.reset_by is None and life.syns < MANY_SYNS):
            return
        how = opened(connection)
        if how in ("refused", "unanswered"):
            life.is_reported = True
            self._add(connection, how, self._begun(connection, how, ts), ts)

    def end(
        self, connection: Connection, session: Session, times: tuple[int, int], unanswered: int, *, is_closed: bool
    ) -> None:
        """A connection is over, or nothing more is seen of it.

        Args:
            connection, session: it.
            times: of its last packet, and until when others have come, µs.
            unanswered: its requests that got no response.
            is_closed: whether both sides closed it, or one reset it.
        """
        ts, now = times
        how = self._how(connection, session, now, unanswered)
        if not how or (how == "refused" and connection.life.is_reported):
            return
        values = self._begun(connection, how, ts)
        client = _client(connection, session)
        life = connection.life
        values.update(
            closed=is_closed,
            closed_by=_end_of(connection.closed_by, client),
            reset_by=_end_of(connection.reset_by, client),
            again=[life.again[client], life.again[1 - client]],
            unacknowledged=[unacknowledged(connection, client), unacknowledged(connection, 1 - client)],
            unanswered=unanswered,
        )
        if session.recognised:
            values.update(speaks=session.verdict, client_ip=session.labels.client[0], frames=list(session.frames))
        elif how == "other":
            talk, peers = session.other_talk, session.tls
            values.update(speaks=session.verdict, asks=talk and talk.asks, answers=talk and talk.answers)
            values.update(server_name=peers and peers.server_name, alert=session.alert)
        self._add(connection, how, values, ts)

    def finish(self) -> None:
        """Report what was counted."""
        for (host, port, how), some in self._counted.items():
            values = {
                "how": how, "server_ip": host, "server_port": port, "began_us": some.first_us,
                "ended_us": some.last_us, "connections": some.number,
            }  # fmt: skip
            name = f"connections:{self._agent_id}:{host}:{port}:{how}:{some.first_us}"
            self._rows.append(self._row(name, 0, some.last_us, values))
        self._counted.clear()
        self._kept.clear()
        self._own, self._since = 0, None

    def _how(self, connection: Connection, session: Session, now: int, unanswered: int) -> str:
        """What is to be reported of it; empty for nothing."""
        if session.recognised:
            client = _client(connection, session)
            is_cut = connection.closed_by == 1 - client and unanswered
            is_unheard = connection.life.again[client] > 1 and unacknowledged(connection, client)
            return "spoke" if connection.reset_by is not None or is_cut or is_unheard else ""
        if session.verdict != "no_data":
            return "other"
        how = opened(connection)
        life = connection.life
        if how == "unanswered":
            return how if life.syns > 1 or now - (life.syn_us or now) >= WAITED_US else ""
        return {"yes": "silent", "refused": "refused"}.get(how, "")

    def _begun(self, connection: Connection, how: str, ts: int) -> dict[str, Any]:
        client = connection.client or 0
        ends = [readable(connection.a), readable(connection.b)]
        life = connection.life
        is_timed = life.syn_us is not None and life.answer_us is not None
        return {
            "how": how, "opened": opened(connection),
            "client_ip": ends[client][0], "client_port": ends[client][1],
            "server_ip": ends[1 - client][0], "server_port": ends[1 - client][1],
            "began_us": connection.first_ts, "ended_us": ts, "syns": life.syns,
            "round_trip_us": (life.answer_us or 0) - (life.syn_us or 0) if is_timed else None,
        }  # fmt: skip

    def _add(self, connection: Connection, how: str, values: dict[str, Any], ts: int) -> None:
        if self._since is None:
            self._since = ts
        elif ts - self._since >= PERIOD_US:
            self.finish()
            self._since = ts
        kind = values["server_ip"], values["server_port"], how
        count = self._kept.get(kind, 0)
        if count >= MOST_OF_A_KIND or self._own >= MOST_ROWS:
            self._count(kind, ts)
            return
        self._kept[kind] = count + 1
        self._own += 1
        seq = ORDINAL + (how != "refused" and "closed" in values)
        self._rows.append(self._row(connection_id(connection, self._agent_id), seq, ts, values))

    def _count(self, kind: tuple[str, int, str], ts: int) -> None:
        if kind not in self._counted and len(self._counted) >= MOST_KINDS:
            kind = "", 0, kind[2]
        some = self._counted.setdefault(kind, _Counted(ts))
        some.number += 1
        some.first_us, some.last_us = min(some.first_us, ts), max(some.last_us, ts)

    def _row(self, name: str, seq: int, ts: int, values: dict[str, Any]) -> Gap:
        known = {key: value for key, value in values.items() if value is not None}
        return Gap(self._agent_id, name, seq, "request", ts, 0, CONNECTION, 1.0, orjson.dumps(known).decode())


def _client(connection: Connection, session: Session) -> int:
    """The direction of the client."""
    return session.client if session.recognised else connection.client or 0


def _end_of(way: int | None, client: int) -> str | None:
    return None if way is None else _ENDS[way != client]
