"""The messages that are wanted: what ``wirelake decode`` may be asked for, beside the api."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase

from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.messages import Decoded
from pipeline.commands.messages.occurring import Occurring
from pipeline.commands.messages.tcp_events import TcpEvent
from pipeline.config.durations import microseconds
from pipeline.errors import UserError

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?Z?")
_FRACTION = re.compile(r"\.(\d{1,6})")
_MOST_CONNECTIONS = 100_000
"""Connections whose client is remembered."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted; None: anything. Names may have ``*`` and ``?``.

    Attributes:
        host: an address, or an address with its port, of either side.
        connection: a connection id or its beginning, or a client's address with its port.
        slower_than: e.g. ``20ms``.
        since, until: ISO times, or times of the day on which the capture begins; UTC.
    """

    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    client: str | None = None
    host: str | None = None
    errors: bool = False
    connection: str | None = None
    slower_than: str | None = None
    since: str | None = None
    until: str | None = None


class MessageFilter:
    """Accepts messages that are all that is wanted. A response is looked at together with its request.

    Raises:
        UserError: a time or duration cannot be understood.
    """

    def __init__(self, wanted: Wanted, describers: Describers) -> None:
        self._wanted, self._describers = wanted, describers
        self._clients: OrderedDict[str, str] = OrderedDict()
        self._since, self._until = _moment("--since", wanted.since), _moment("--until", wanted.until)
        self._occurring: Occurring | None = Occurring(wanted)
        self._asks_about = bool(wanted.group or wanted.topic or wanted.partition is not None)
        self._slower = None if wanted.slower_than is None else _duration(wanted.slower_than)
        self._tests = [
            test
            for test, is_asked in (
                (self._is_in_time, wanted.since or wanted.until),
                (self._is_slow, wanted.slower_than),
                (self._is_at, wanted.host),
                (self._is_on, wanted.connection),
                (self._is_of, wanted.client),
                (self._is_about, self._asks_about),
                (self._describers.is_wrong, wanted.errors),
            )
            if is_asked
        ]

    @property
    def asks(self) -> bool:
        """Whether not all messages are wanted."""
        return bool(self._tests)

    def accepts(self, item: Decoded) -> bool:
        """Whether a message is wanted."""
        if self._wanted.client is not None:
            self._note_client(item)
        is_it = all(test(item) for test in self._tests)
        if is_it:
            self._occurring = None
        elif self._occurring is not None:
            self._occurring.note(item, self._describers.about(item) if self._asks_about else None)
        return is_it

    def accepts_tcp(self, event: TcpEvent) -> bool:
        """Whether an event of TCP is wanted: of messages alone it is known what they are about.

        Raises:
            UserError: a connection is asked for by its id, which only messages have.
        """
        wanted, ends = self._wanted, (event.client, event.server)
        if wanted.connection is not None and ":" not in wanted.connection:
            raise UserError("--tcp finds a connection by its client's address:port")
        of_client = f"{event.client[0]}:{event.client[1]}"
        if (wanted.connection is not None and wanted.connection != of_client) or not self._is_within(event.ts):
            return False
        return wanted.host is None or any(wanted.host in (ip, f"{ip}:{port}") for ip, port in ends)

    def why_none(self) -> str:
        """Why no message was accepted, as far as that is known: see Occurring.why_none."""
        return "" if self._occurring is None else self._occurring.why_none()

    def _note_client(self, item: Decoded) -> None:
        if item.message.client_id and item.frame.direction == "request":
            self._clients[item.frame.connection_id] = item.message.client_id
            if len(self._clients) > _MOST_CONNECTIONS:
                self._clients.popitem(last=False)

    def _is_in_time(self, item: Decoded) -> bool:
        return self._is_within(item.frame.ts)

    def _is_within(self, ts: int) -> bool:
        since = None if self._since is None else self._since(ts)
        until = None if self._until is None else self._until(ts)
        if since is not None and until is not None and since > until:
            raise UserError(f"--since {self._wanted.since} is after --until {self._wanted.until}: no time is both")
        return (since is None or ts >= since) and (until is None or ts <= until)

    def _is_slow(self, item: Decoded) -> bool:
        took_us = item.latency_us if item.service_us is None else item.service_us
        return took_us is not None and self._slower is not None and took_us > self._slower

    def _is_at(self, item: Decoded) -> bool:
        frame, host = item.frame, self._wanted.host
        return host in (
            frame.client_ip,
            frame.server_ip,
            f"{frame.client_ip}:{frame.client_port}",
            f"{frame.server_ip}:{frame.server_port}",
        )

    def _is_on(self, item: Decoded) -> bool:
        frame, connection = item.frame, self._wanted.connection or ""
        return frame.connection_id.startswith(connection) or connection == f"{frame.client_ip}:{frame.client_port}"

    def _is_of(self, item: Decoded) -> bool:
        name = self._clients.get(item.frame.connection_id)
        return name is not None and fnmatchcase(name, self._wanted.client or "")

    def _is_about(self, item: Decoded) -> bool:
        wanted, about = self._wanted, self._describers.about(item)
        if wanted.group is not None and not any(fnmatchcase(group, wanted.group) for group in about.groups):
            return False
        if wanted.topic is None and wanted.partition is None:
            return True
        return any(
            (wanted.topic is None or fnmatchcase(topic, wanted.topic)) and wanted.partition in (None, partition)
            for topic, partition in about.places
        )


def _duration(text: str) -> int:
    """A duration in µs."""
    found = microseconds(text)
    if found is None:
        raise UserError(f"--slower-than {text!r}: give a duration, e.g. 250us, 20ms or 1.5s")
    return found


class _TimeOfDay:
    """A time of the day on which the first message comes."""

    def __init__(self, since_midnight: timedelta) -> None:
        self._since_midnight = since_midnight
        self._moment: int | None = None

    def __call__(self, ts: int) -> int:
        if self._moment is None:
            midnight = datetime.fromtimestamp(ts // 1_000_000, timezone.utc).replace(hour=0, minute=0, second=0)
            self._moment = int((midnight + self._since_midnight).timestamp() * 1e6)
        return self._moment


def _six_digits(found: re.Match[str]) -> str:
    return f".{found[1]:0<6}"  # Python 3.10 takes no other number of digits


def _moment(option: str, text: str | None) -> Callable[[int], int] | None:
    """A time in µs, which may depend on that of the first message."""
    if text is None:
        return None
    try:
        if _CLOCK.fullmatch(text):
            hours, minutes, seconds = (*map(float, text.rstrip("Z").split(":")), 0.0)[:3]
            if not (hours < 24 and minutes < 60 and seconds < 60):
                raise ValueError
            return _TimeOfDay(timedelta(hours=hours, minutes=minutes, seconds=seconds))
        moment = datetime.fromisoformat(_FRACTION.sub(_six_digits, text).replace("Z", "+00:00"))
    except ValueError:
        raise UserError(f"{option} {text!r}: give a time (UTC), e.g. 04:46:08 or 2026-11-21T04:46:08.5Z") from None
    exact = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    at = round(exact.timestamp() * 1e6)
    return lambda _: at
