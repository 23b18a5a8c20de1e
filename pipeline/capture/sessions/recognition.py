"""Recognises a connection's protocol, and which side is the client; keeps its first bytes until they show it."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from decoder.model import FrameFlags
from decoder.protocol import WireProtocol
from decoder.work import METER
from pipeline.capture.network.link import Endpoint
from pipeline.capture.sessions.foreign_protocols import NOTHING, UNKNOWN, answer_of_another, kind_of
from pipeline.capture.sessions.proxy_protocol import Client, ProxyHeader, may_begin_header, read_proxy_header
from pipeline.capture.sessions.tls import (
    alert_of,
    encrypted_from,
    hidden_alert,
    is_client_hello,
    looks_like_tls,
    says_goodbye,
    server_name,
    versions,
)
from pipeline.capture.stats import OtherTalk, TlsPeers
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.state import SessionState
from pipeline.capture.tcp.tracker import Kind, StreamEvent
from pipeline.other_protocols import TLS

SURE_ENOUGH = 0.8
"""Confidence that a stream seen from its first byte needs: it must begin with the protocol."""

SURE_ENOUGH_MIDWAY = 0.5
"""Confidence for a stream joined midway, or with a hole: a chain of frames somewhere in it must do."""

RECOGNISE_BYTES = 64 * 1024
"""Bytes of a connection kept until its protocol is known. The first message of a client is far smaller."""

EAGER_BYTES = 2048
"""After so many bytes a stream that is not recognised is looked at again only when it has grown by a quarter: each look
reads all of it."""

MIN_EVENT_BYTES = 64
"""What a segment counts at least: thousands that were cut to nothing by a snap length must not fill the memory."""

GIVE_UP_BYTES = 16 * 1024 * 1024
"""Bytes of a connection joined midway after which it is no longer looked at: one large message may be under way."""

LOOK_UNITS, EVENT_UNITS, LOOKED_AT_BYTES = 100, 3, 128
"""Work (see decoder.work) that a look takes, and an event of it, and bytes for one more; beside what is decoded on
trial."""

MAX_RUNS = 16
"""Runs of bytes between holes that are looked at, the latest."""


class Recognised(NamedTuple):
    """What a connection speaks, and in which direction its requests go; behind which header of a proxy, if any."""

    protocol: WireProtocol
    client: int
    header: ProxyHeader | None = None


class _Header(NamedTuple):
    """A proxy's header in front of one direction, of which more bytes may be to come."""

    direction: int
    header: ProxyHeader
    is_whole: bool


class _Run(NamedTuple):
    """Bytes of one direction between two holes, and where segments begin in them."""

    data: bytes
    starts: Sequence[int]


class Recognition:
    """The first bytes of one connection.

    Attributes:
        events: what is kept.
        dropped: bytes of each direction that were not kept.
        harmed: of each direction whether some of these were lost, or not kept for want of memory.
        seen: what came so far, in bytes; each event counts at least MIN_EVENT_BYTES.
        verdict: why it was given up, see CaptureStats.not_recognised; empty before.
        tls: who talks to whom, if that is ``tls``.
        other_talk: what client and server speak, if it was given up as another protocol.
        proxied: the client that a proxy's header names, if it was given up.
        alert: of TLS, who ended the handshake with which alert; None without one.
        tls_versions: the newest version of TLS that the client offers, and the one that the server chose.
        closed_by: of TLS, the direction of who stated first that it closes; None if neither was seen to.
        is_end_known: whether neither side can have stated that without being seen.
    """

    def __init__(self, connection: Connection, protocols: Sequence[WireProtocol]) -> None:
        self.events: list[StreamEvent] = []
        self.dropped = [0, 0]
        self.harmed = [False, False]
        self.seen = 0
        self.verdict = ""
        self.tls: TlsPeers | None = None
        self.other_talk: OtherTalk | None = None
        self.proxied: Client | None = None
        self.alert: str | None = None
        self.tls_versions: tuple[str | None, str | None] = None, None
        self.closed_by: int | None = None
        self.is_end_known = True
        self._connection = connection
        self._protocols = protocols
        self._kept = 0
        self._next_try = 0

    @property
    def buffered(self) -> int:
        """Bytes kept, as in ``seen``."""
        return self._kept

    def take(self, event: StreamEvent) -> Recognised | None:
        """Take the next event; what it settles, if it does."""
        self.events.append(event)
        self._kept += _cost(event)
        self.seen += _cost(event)
        if self.seen < self._next_try:
            return None
        is_full = self._kept > RECOGNISE_BYTES
        found = self._look(at_end=is_full)
        if found is not None:
            return found
        if not is_full:
            if self.seen > EAGER_BYTES:
                self._next_try = self.seen + self._kept // 4
            return None
        joined_midway = self._connection.client is None or any(e.lost for e in self.events)
        if not joined_midway or self.seen > GIVE_UP_BYTES or _is_tls(self._content()[0]):
            self.give_up()
            return None
        # From here on look less often, at a window that moves: otherwise the cost would grow with the square.
        self._next_try = self.seen + RECOGNISE_BYTES // 2
        self.drop(RECOGNISE_BYTES // 2)
        return None

    def end(self) -> Recognised | None:
        """Nothing more comes: what it speaks, or it is given up."""
        found = self._look(at_end=True) if self.events else None
        if found is None:
            self.give_up()
        return found

    def hand_over(self) -> list[StreamEvent]:
        """What was kept, without a proxy's header; it is kept no longer."""
        events, _ = self._content()
        self.events, self._kept = [], 0
        return events

    def kept(self) -> tuple[int, int]:
        """Bytes of each direction that are kept, lost ones among them."""
        counts = [0, 0]
        for event in self.events:
            counts[event.direction] += len(event.data) + event.lost
        return counts[0], counts[1]

    def state(self) -> SessionState:
        """What another process needs to continue here, while nothing is settled."""
        return SessionState(
            "",
            unread=self.kept(),
            since=self.events[0].ts if self.events else None,
            seen=self.seen - self.buffered,
            dropped=(self.dropped[0], self.dropped[1]),
            harmed=(self.harmed[0], self.harmed[1]),
        )

    def drop(self, keep_bytes: int) -> None:
        """Forget the oldest bytes."""
        count = 0
        while self._kept > keep_bytes:
            oldest = self.events[count]
            self._kept -= _cost(oldest)
            self.dropped[oldest.direction] += len(oldest.data) + oldest.lost
            self.harmed[oldest.direction] |= bool(oldest.lost) or not keep_bytes
            count += 1
        del self.events[:count]

    def give_up(self) -> None:
        """What it speaks is unknown."""
        events, header = self._content()
        self.proxied = None if header is None else header.header.client
        first = [_runs(events, direction)[0].data for direction in (0, 1)]
        if _is_tls(events) and not self._is_misunderstood(first):
            self.verdict, self.tls = "tls", self._tls_peers(first, header)
            self.other_talk = self._unanswered_handshake(first)
            client = self._client_of(first)
            self.alert = alert_of(first[client], first[1 - client]) or hidden_alert(
                first[client], first[1 - client], _behind_keys(events, client, first[client])
            )
            is_whole = all(self._connection.opened_in_capture(way) for way in (0, 1))
            self.closed_by = _first_to_close(events, first) if is_whole else None
            self.is_end_known = is_whole
            self.tls_versions = versions(first[client], first[1 - client])
        elif any(event.data for event in events) or any(self.dropped):
            self.verdict = "not_recognised"
            self.other_talk = self._talk(first)
        else:
            is_cut = bool(self.events) if header is None else any(event.lost for event in events)
            self.verdict = "not_captured" if is_cut else "no_data"
        self.events.clear()
        self._kept = 0

    def _look(self, *, at_end: bool) -> Recognised | None:
        METER.units += LOOK_UNITS + EVENT_UNITS * len(self.events) + self._kept // LOOKED_AT_BYTES
        events, header = self._content(at_end=at_end)
        if header is not None and not header.is_whole:
            return None
        runs = [_runs(events, direction) for direction in (0, 1)]
        best: tuple[int, float, WireProtocol, int] | None = None
        sender = self._connection.client if header is None else header.direction
        is_client_known = sender is not None
        for client in (0, 1) if sender is None else (sender,):
            from_start = self._connection.opened_in_capture(client) and not self.dropped[client]
            for protocol in self._protocols:
                sure = _recognise(protocol, runs[client], runs[1 - client], from_start=from_start)
                pairs = self._pairs(protocol, client, events) if sure and not is_client_known else 0
                if sure and (best is None or (pairs, sure) > best[:2]):
                    best = (pairs, sure, protocol, client)
        if best is None or not (at_end or is_client_known or best[0]):
            return None
        return Recognised(best[2], best[3], None if header is None else header.header)

    def _pairs(self, protocol: WireProtocol, client: int, events: Sequence[StreamEvent]) -> int:
        """On trial: responses that find their request, if this side is the client.

        Messages that carry captured messages look like requests in either direction.
        """
        pairer = protocol.pairer()
        framers = {client: protocol.framer("request", pairer), 1 - client: protocol.framer("response", pairer)}
        for framer in framers.values():
            framer.lost(0, 0)
        if any(event.data for event in events if event.direction == client):
            pairer.expect_requests()
        pairs = 0
        for event in events:
            framer = framers[event.direction]
            if event.kind is Kind.LOST:
                frames = [*framer.conclude(event.lost).frames, *framer.lost(event.lost, event.ts).frames]
            else:
                frames = [*framer.feed(event.data, event.ts).frames]
            for raw in frames:
                key = pairer.request(raw) if event.direction == client else pairer.response(raw)
                pairs += event.direction != client and not key.flags & FrameFlags.ORPHAN_RESPONSE
        return pairs

    def _content(self, *, at_end: bool = True) -> tuple[list[StreamEvent], _Header | None]:
        """What is kept without a proxy's header, and that header; ``at_end``: nothing more comes, it must be whole."""
        for direction in (0, 1) if self._connection.client is None else (self._connection.client,):
            first = next((event for event in self.events if event.direction == direction), None)
            if first is None or self.dropped[direction] or not may_begin_header(first.data):
                continue
            data = _runs(self.events, direction)[0].data
            header = read_proxy_header(data)
            if header is not None and (header.size <= len(data) or not at_end):
                is_whole = header.size <= len(data)
                return _behind(self.events, direction, header.size), _Header(direction, header, is_whole)
        return self.events, None

    def _is_misunderstood(self, first: Sequence[bytes]) -> bool:
        """Whether one side speaks TLS and the other answers in clear, or with an alert to what came in clear."""
        client = self._connection.client
        if client is None:
            return False
        asks, answers = kind_of(first[client]), kind_of(first[1 - client])
        if asks == TLS:
            return answers not in (TLS, NOTHING, UNKNOWN)
        return asks != NOTHING and answer_of_another(first[1 - client]) == TLS

    def _talk(self, first: Sequence[bytes]) -> OtherTalk:
        client = self._client_of(first)
        server = readable((self._connection.a, self._connection.b)[1 - client])
        return OtherTalk(*server, kind_of(first[client]), kind_of(first[1 - client]))

    def _unanswered_handshake(self, first: Sequence[bytes]) -> OtherTalk | None:
        """A server that closes when it is asked for TLS does not speak it: Kafka and MongoDB answer nothing then."""
        connection, client = self._connection, self._client_of(first)
        is_closed = connection.closed_by == 1 - client and connection.opened_in_capture(1 - client)
        talk = self._talk(first)
        is_one = (
            is_closed and is_client_hello(first[client]) and talk.answers == NOTHING and not self.dropped[1 - client]
        )
        return talk if is_one else None

    def _client_of(self, first: Sequence[bytes]) -> int:
        """The direction of the client; without a SYN or a ClientHello the lower port is taken for the server's."""
        connection = self._connection
        if connection.client is not None:
            return connection.client
        hello = next((direction for direction in (0, 1) if is_client_hello(first[direction])), None)
        return int(connection.a[1] < connection.b[1]) if hello is None else hello

    def _tls_peers(self, first: Sequence[bytes], header: _Header | None) -> TlsPeers:
        connection, client = self._connection, self._client_of(first)
        ends = [readable(connection.a), readable(connection.b)]
        named = header.header.client if header is not None and header.direction == client else None
        return TlsPeers((named or ends[client])[0], *ends[1 - client], server_name(first[client]))


def _behind(events: Sequence[StreamEvent], direction: int, size: int) -> list[StreamEvent]:
    """The events without the first bytes of a direction."""
    found = []
    for event in events:
        cut = min(size, len(event.data)) if event.direction == direction else 0
        size -= cut
        if cut and (cut < len(event.data) or event.conflict):
            found.append(event._replace(data=event.data[cut:], start=event.start + cut))
        elif not cut:
            found.append(event)
    return found


def _behind_keys(events: Sequence[StreamEvent], client: int, asks: bytes) -> bytes:
    """What the server sent after the first encrypted bytes of the client, which are the end of the handshake."""
    begin, sent, answers = encrypted_from(asks), 0, []
    for event in events:
        if event.direction == client:
            sent += len(event.data)
        elif begin is not None and sent > begin:
            answers.append(event.data)
    return b"".join(answers)


def _first_to_close(events: Sequence[StreamEvent], first: Sequence[bytes]) -> int | None:
    """Who stated first that it closes, by the last record of each side."""
    last = {event.direction: number for number, event in enumerate(events) if event.data}
    closing = [way for way in last if says_goodbye(first[way])]
    return min(closing, key=last.__getitem__, default=None) if len(last) > 1 else None


def _is_tls(events: Sequence[StreamEvent]) -> bool:
    return any(looks_like_tls(run.data) for direction in (0, 1) for run in _runs(events, direction))


def readable(endpoint: Endpoint) -> tuple[str, int]:
    """Address and port as people write them."""
    return str(ipaddress.ip_address(endpoint[0])), endpoint[1]


def _cost(event: StreamEvent) -> int:
    """Bytes that an event takes at least, however few it carries."""
    return max(len(event.data), MIN_EVENT_BYTES)


def _recognise(protocol: WireProtocol, client: Sequence[_Run], server: Sequence[_Run], *, from_start: bool) -> float:
    """How sure the runs of both directions are this protocol; 0 if not sure enough."""
    is_silent = not any(run.data for run in client)
    sure = protocol.recognise(client[0].data, server[0].data, (client[0] if client[0].data else server[0]).starts)
    if sure >= (SURE_ENOUGH if from_start and not is_silent else SURE_ENOUGH_MIDWAY):
        return sure
    later = [protocol.recognise(run.data, b"", run.starts) for run in client[1:][-MAX_RUNS:]]
    if is_silent:
        later += [protocol.recognise(b"", run.data, run.starts) for run in server[1:][-MAX_RUNS:]]
    return max((sure for sure in later if sure >= SURE_ENOUGH_MIDWAY), default=0.0)


def _runs(events: Sequence[StreamEvent], direction: int) -> list[_Run]:
    """The bytes of a direction between its holes."""
    runs: list[list[bytes]] = [[]]
    for event in events:
        if event.direction != direction:
            continue
        if event.lost:
            runs.append([])
        elif event.data:
            runs[-1].append(event.data)
    return [_Run(b"".join(run), list(itertools.accumulate(map(len, run[:-1]), initial=0))) for run in runs]
