"""Rows of what became of connections: rows of ``gaps`` with a ``life``.

A connection that speaks has one when it ends. Of those that do not (a flood, a scan) the first have a row each, the
others are counted, by server and by how they ended: neither the memory nor the landing zone may grow with them.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import Any

import orjson

from decoder.model import CONNECTION, Gap
from pipeline.capture.network.icmp import IcmpError
from pipeline.capture.sessions.labels import connection_id, flow_id
from pipeline.capture.sessions.recognition import readable
from pipeline.capture.sessions.session import Session
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.life import Icmp, Life, Looked, opened, unacknowledged

MOST_OF_A_KIND, MOST_ROWS = 100, 1_000
"""Connections that have a row each within PERIOD_US: to one server with one end, and all together."""

MOST_OF_A_HOST = 200
"""The same to one host, whichever its ports: a scan."""

MOST_KINDS, MOST_PORTS = 500, 20
"""Servers and ends by which the others are counted; ports of one host that have a count of their own."""

PERIOD_US = 60_000_000
"""So often what was counted is reported, µs of capture time."""

WAITED_US = 3_000_000
"""A SYN that nothing answers for so long was sent again twice: by then it is no delay of the network, µs."""

MANY_SYNS = 3
"""SYNs of one connection from which on it is reported that nothing answers."""

ORDINAL = 1 << 40
"""``seq`` of these rows begins here: no direction has this many frames."""

OPEN = 1 << 39
"""``seq`` of rows of connections that continue begins here; added to it is how many packets they had. The row about the
end takes their place."""

STALLED_US = 5_000_000
"""A side that asks to be sent nothing for so long is reported, µs; again when it is a tenth longer."""

OF_FRAMES = ("spoke", "served")
"""How a connection that speaks is reported: something but its frames shows in it, or nothing does. Each has a row, for
its frames have more."""

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
        self._kept: Counter[tuple[str, int, str]] = Counter()
        self._hosts: Counter[tuple[str, str]] = Counter()
        self._ports: Counter[tuple[str, str]] = Counter()
        self._counted: dict[tuple[str, int, str], _Counted] = {}
        self._own = 0

    def take(self) -> list[Gap]:
        """The rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def look(self, connection: Connection, ts: int) -> None:
        """A SYN or a RST has come: report a connection that is refused, or that nothing answers, while that is new.

        Or one whose client sends its SYN again and again although the server answers.
        """
        life = connection.life
        if life.is_reported or (connection.reset_by is None and life.icmp is None and life.syns < MANY_SYNS):
            return
        how = opened(connection)
        if how in ("refused", "unanswered"):
            life.is_reported = True
            self._add(connection, how, self._begun(connection, how, ts, connection.client or 0), ts)
        elif (
            how == "yes"
            and life.syns > 1
            and connection.client is not None
            and life.packets[connection.client] == life.syns
        ):
            life.is_reported = True
            values = self._begun(connection, "silent", ts, connection.client)
            values.update(_counts(life, connection.client, ts), closed=False, is_interim=True)
            self._add(connection, "silent", values, ts)

    def take_icmp(self, connection: Connection | None, icmp: IcmpError, ts: int) -> None:
        """An ICMP error was captured at ``ts`` (µs). It counts if its connection has sent the segment that it quotes.

        RFC 5927, 4.1: whoever cannot see the connection must guess the number.
        """
        if connection is None or connection.is_over():
            return
        way = 0 if icmp.source == connection.a else 1
        half = connection.halves[way]
        if half.next is None or half.first is None or not half.first - 1 <= half.position(icmp.seq) <= half.next:
            return
        by = str(ip_address(icmp.by))
        connection.life.note_icmp(Icmp(way, icmp.kind, icmp.code, by, icmp.mtu, 1, ts))
        self.look(connection, ts)

    def look_at_close(self, connection: Connection, session: Session, ts: int) -> None:
        """One side has closed, and the other may never do so: report what it gave up waiting for.

        That is a connection whose bytes were sent again and never acknowledged: who has forgotten it does not answer
        the close, either.
        """
        life = connection.life
        if life.is_reported or connection.closed_by is None or not session.recognised or session.is_lossy:
            return
        if not any(life.again[way] > 1 and unacknowledged(connection, way) for way in (0, 1)):
            return
        life.is_reported = True
        values = self._values(connection, session, "spoke", ts, len(session.unanswered()))
        self._add(connection, "spoke", {**values, "closed": False, "is_interim": True}, ts)

    def look_while_open(self, connection: Connection, session: Session, ts: int) -> bool:
        """Report that what a side has sent again is still not acknowledged, or that a side does not read.

        Neither ends a connection soon: clients wait for half a minute, servers for a quarter of an hour.

        Returns:
            Whether there was something new to report.
        """
        life, is_stuck, is_news = connection.life, False, False
        for way in (0, 1):
            half, before = connection.halves[way], life.looked[way]
            is_same = (before.sent, before.acked) == (half.next, half.acked)
            is_unheard = is_same and life.again[way] > 1 and unacknowledged(connection, way) > 0
            stalled_us = life.stalled(way, ts)
            is_longer = stalled_us >= STALLED_US and 10 * stalled_us >= 11 * before.stalled_us
            is_news |= is_longer or (is_unheard and not before.is_reported)
            is_stuck |= is_unheard
            shown_us = stalled_us if is_longer else before.stalled_us
            life.looked[way] = Looked(half.next, half.acked, is_unheard or (is_same and before.is_reported), shown_us)
        is_news = is_news and not life.is_reported and not session.is_lossy
        if is_news:
            values = self._values(connection, session, "spoke" if is_stuck else "served", ts, len(session.unanswered()))
            self._add(connection, values["how"], {**values, "closed": False, "is_interim": True}, ts)
        return is_news

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
        if how == "refused" and connection.life.is_reported:
            return
        values = self._values(connection, session, how, ts, unanswered)
        self._add(connection, how, {**values, "closed": is_closed}, ts)

    def _values(self, connection: Connection, session: Session, how: str, ts: int, unanswered: int) -> dict[str, Any]:
        """All that a row states but whether it is over."""
        client = _client(connection, session)
        values = self._begun(connection, how, ts, client)
        values.update(
            closed_by=_end_of(connection.closed_by, client),
            reset_by=None if connection.life.is_half_seen else _end_of(connection.reset_by, client),
            unacknowledged=[unacknowledged(connection, client), unacknowledged(connection, 1 - client)],
            unanswered=unanswered,
        )
        values.update(_counts(connection.life, client, ts))
        if session.recognised:
            (client_ip, client_port), (server_ip, server_port) = session.labels.client, session.labels.server
            values.update(
                speaks=session.verdict, frames=list(session.frames), state=_state(connection, session, unanswered),
                client_ip=client_ip, client_port=client_port, server_ip=server_ip, server_port=server_port,
            )  # fmt: skip
        elif how == "other":
            talk, peers = session.other_talk, session.recognition.tls
            values.update(speaks=session.verdict, asks=talk and talk.asks, answers=talk and talk.answers)
            values.update(server_name=peers and peers.server_name, alert=session.recognition.alert)
            values["tls_offered"], values["tls_version"] = session.recognition.tls_versions
            if connection.closed_by is not None and session.recognition.is_end_known:
                values["closed_by"] = _end_of(session.recognition.closed_by, client) or values["closed_by"]
            elif not session.recognition.is_end_known:
                values["closed_by"] = None
        values["is_proxied"] = True if session.proxied is not None else None
        return values

    def note_unread(self, syns: int, ts: int) -> None:
        """Count SYNs that were not read, since packets of connections that nothing answers cost too much."""
        if syns:
            self._begin_period(ts)
            self._count(("", 0, "unknown"), ts, syns)

    def finish(self) -> None:
        """Report what was counted."""
        for (host, port, how), some in self._counted.items():
            values = {
                "how": how, "server_ip": host, "server_port": port, "began_us": some.first_us,
                "ended_us": some.last_us, "connections": some.number,
            }  # fmt: skip
            name = f"connections:{self._agent_id}:{host}:{port}:{how}:{some.first_us}"
            self._rows.append(self._row(name, 0, some.last_us, values))
        for counts in (self._counted, self._kept, self._hosts, self._ports):
            counts.clear()
        self._own, self._since = 0, None

    def _how(self, connection: Connection, session: Session, now: int, unanswered: int) -> str:
        """What became of it, in a word."""
        if session.recognised:
            client = _client(connection, session)
            is_cut = connection.closed_by == 1 - client and unanswered
            is_unheard = any(connection.life.again[way] > 1 and unacknowledged(connection, way) for way in (0, 1))
            return "spoke" if connection.reset_by is not None or is_cut or is_unheard else "served"
        if session.verdict != "no_data":
            return "other"
        how = opened(connection)
        life = connection.life
        if how == "unanswered":
            return (
                how if life.syns > 1 or life.icmp is not None or now - (life.syn_us or now) >= WAITED_US else "unknown"
            )
        return {"yes": "silent", "refused": "refused"}.get(how, "unknown")

    def _begun(self, connection: Connection, how: str, ts: int, client: int) -> dict[str, Any]:
        ends = [readable(connection.a), readable(connection.b)]
        life = connection.life
        is_timed = life.syn_us is not None and life.answer_us is not None and life.syns == 1
        return {
            "how": how, "opened": opened(connection), "flow_id": flow_id(connection, client),
            "client_ip": ends[client][0], "client_port": ends[client][1],
            "server_ip": ends[1 - client][0], "server_port": ends[1 - client][1],
            "began_us": connection.first_ts, "ended_us": ts, "syns": life.syns,
            "isn": [connection.halves[client].isn, connection.halves[1 - client].isn],
            "round_trip_us": (life.answer_us or 0) - (life.syn_us or 0) if is_timed else None,
            "icmp": None if life.icmp is None else _reported(life.icmp, client),
        }  # fmt: skip

    def _add(self, connection: Connection, how: str, values: dict[str, Any], ts: int) -> None:
        self._begin_period(ts)
        if how not in OF_FRAMES:
            kind, host = (values["server_ip"], values["server_port"], how), (values["server_ip"], how)
            if self._kept[kind] >= MOST_OF_A_KIND or self._hosts[host] >= MOST_OF_A_HOST or self._own >= MOST_ROWS:
                self._count(kind, ts)
                return
            self._kept[kind] += 1
            self._hosts[host] += 1
            self._own += 1
        seq = ORDINAL + (how != "refused" and "closed" in values)
        if "is_interim" in values:
            seq = OPEN + sum(connection.life.packets)
        self._rows.append(self._row(connection_id(connection, self._agent_id), seq, ts, values))

    def _begin_period(self, ts: int) -> None:
        if self._since is None:
            self._since = ts
        elif ts - self._since >= PERIOD_US:
            self.finish()
            self._since = ts

    def _count(self, kind: tuple[str, int, str], ts: int, number: int = 1) -> None:
        if kind not in self._counted:
            host = kind[0], kind[2]
            if self._ports[host] >= MOST_PORTS:
                kind = kind[0], 0, kind[2]
            if kind not in self._counted and len(self._counted) >= MOST_KINDS:
                kind = "", 0, kind[2]
            self._ports[host] += 1
        some = self._counted.setdefault(kind, _Counted(ts))
        some.number += number
        some.first_us, some.last_us = min(some.first_us, ts), max(some.last_us, ts)

    def _row(self, name: str, seq: int, ts: int, values: dict[str, Any]) -> Gap:
        known = {key: value for key, value in values.items() if value is not None}
        return Gap(self._agent_id, name, seq, "request", ts, 0, CONNECTION, 1.0, orjson.dumps(known).decode())


def _client(connection: Connection, session: Session) -> int:
    """The direction of the client."""
    if session.recognised:
        return session.client
    if connection.client is None and session.recognition.tls is not None:
        return int(readable(connection.a) == (session.recognition.tls.server_ip, session.recognition.tls.server_port))
    return connection.client or 0


def _counts(life: Life, client: int, ended_us: int) -> dict[str, Any]:
    """What was counted, of the client first; what did not happen is left out."""
    server = 1 - client
    stalled_us = [life.stalled(way, ended_us) for way in (client, server)]
    seldom: dict[str, list[int] | list[int | None]] = {
        "keepalives": [life.probes[client], life.probes[server]],
        "zero_windows": [life.zero_windows[client], life.zero_windows[server]],
        "stalled_us": stalled_us,
        "first_again_us": [life.again_from[client], life.again_from[server]],
        "last_again_us": [life.again_until[client], life.again_until[server]],
        "first_zero_window_us": [life.zero_from[client], life.zero_from[server]],
    }
    return {
        "packets": [life.packets[client], life.packets[server]],
        "bytes": [life.sent[client], life.sent[server]],
        "again": [life.again[client], life.again[server]],
        "spoke_us": [life.spoke_us[client], life.spoke_us[server]],
        "silence_us": life.silence[0],
        "silent_until_us": life.silence[1] or None,
        **{name: counts for name, counts in seldom.items() if any(counts)},
    }


def _reported(icmp: Icmp, client: int) -> dict[str, Any]:
    """What ICMP errors state, of whose packets."""
    mtu = {} if icmp.mtu is None else {"mtu": icmp.mtu}
    ends = {"by": icmp.by, "of": _ENDS[icmp.way != client]}
    return {"type": icmp.kind, "code": icmp.code, **ends, "messages": icmp.number, "first_us": icmp.first_us, **mtu}


def _state(connection: Connection, session: Session, unanswered: int) -> str:
    """In what a connection that speaks was interrupted, if it was."""
    if session.is_lossy or connection.life.is_half_seen:
        return "unknown"
    if session.is_answering or unanswered:
        return "answering" if session.is_answering else "asking"
    return "unknown" if session.may_be_asking() else "idle"


def _end_of(way: int | None, client: int) -> str | None:
    return None if way is None else _ENDS[way != client]
