"""``wirelake explain --follow-offset``: every message that speaks of one offset of a partition."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from decoder import Frame
from pipeline.capture.sessions.pending_requests import HOLD_FRAMES
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.messages.failures import Failures
from pipeline.commands.messages.message_filter import Wanted
from pipeline.commands.messages.message_lines import MessageLines
from pipeline.commands.messages.messages import Decoded, MessageReader, as_object
from pipeline.commands.messages.occurring import Occurring
from pipeline.terminal.console import json_line
from pipeline.terminal.lines import Lines


@dataclass(frozen=True, slots=True)
class Place:
    """One offset of a partition; ``topic`` is its name, or its id."""

    topic: str
    partition: int
    offset: int


class OffsetFollower:
    """Finds what speaks of an offset.

    Attributes:
        describers: what it asks.
        count: messages looked at.
        occurring: what they are about.
    """

    def __init__(self, place: Place, failures: Failures) -> None:
        self._place = place
        self._failures = failures
        self._is_found = False
        self.describers = Describers()
        self.count = 0
        self.occurring = Occurring(Wanted(topic=place.topic, partition=place.partition))

    def follow(self, frames: Iterable[Frame]) -> Iterator[tuple[Decoded, str]]:
        """The messages that speak of it, exchange by exchange; a response with what it says of it."""
        reader = MessageReader(keeps_requests=True, failures=self._failures)
        waiting: OrderedDict[str, Decoded] = OrderedDict()
        for frame in frames:
            item = reader.read(frame)
            self.count = item.number
            with self._failures.of(item.number, frame.exchange_id):
                self.describers.note(item)
            name = frame.exchange_id
            if frame.direction == "request" and name is not None:
                waiting[name] = item
                if len(waiting) > HOLD_FRAMES:
                    yield from self._alone(waiting.popitem(last=False)[1])
                continue
            asked = waiting.pop(name, None) if name is not None else None
            statement = self._noted(item)
            if statement:
                if asked is not None:
                    yield asked, ""
                yield item, statement
        for item in waiting.values():
            yield from self._alone(item)

    def _alone(self, item: Decoded) -> Iterator[tuple[Decoded, str]]:
        """A request without a response."""
        statement = self._noted(item)
        if statement:
            yield item, statement

    def _noted(self, item: Decoded) -> str:
        """What a message says of the offset; nothing where we fail on it."""
        statement = ""
        with self._failures.of(item.number, item.frame.exchange_id):
            statement = self._statement(item)
            self._note(item, is_it=bool(statement))
        return statement

    def _note(self, item: Decoded, *, is_it: bool) -> None:
        """Take note of what an exchange is about, as long as none speaks of the offset."""
        self._is_found = self._is_found or is_it
        if not self._is_found:
            self.occurring.note(item, self.describers.about(item))

    def _statement(self, item: Decoded) -> str:
        place = self._place
        return self.describers.of_offset(item, place.topic, place.partition, place.offset)


@dataclass(slots=True)
class _Repeats:
    """Prints messages, and of those that say the same again, one after the other on one connection, how many."""

    lines: MessageLines
    known: tuple[object, ...] = ()
    number: int = 0
    last: Decoded | None = None

    def write(self, asked: Decoded | None, item: Decoded, statement: str) -> None:
        """A message with what it says of the offset, and the request before it."""
        frame = item.frame
        key = (frame.client_ip, frame.client_port, frame.server_ip, frame.server_port, item.message.api_key, statement)
        if key == self.known:
            self.number, self.last = self.number + 1, item
            return
        self.end()
        self.known = key
        if asked is not None:
            self.lines.write(asked)
        self.lines.write(item, statement)

    def end(self) -> None:
        """What was not printed, in a line."""
        if self.last is not None:
            self.lines.write_more(self.number, self.last)
        self.number, self.last = 0, None


def show_offset(frames: Iterable[Frame], place: Place, failures: Failures, *, as_json: bool) -> tuple[int, int, str]:
    """Print what speaks of an offset; returns how many messages do, how many were looked at, and why none does."""
    follower, found = OffsetFollower(place, failures), 0
    repeats = _Repeats(MessageLines(Lines(), follower.describers))
    asked: Decoded | None = None
    for item, statement in follower.follow(frames):
        found += 1
        with failures.of(item.number, item.frame.exchange_id):
            if as_json:
                sys.stdout.buffer.write(json_line({**as_object(item), "says": statement}))
            elif not statement:
                asked = item
            else:
                repeats.write(asked, item, statement)
                asked = None
    repeats.end()
    sys.stdout.flush()
    return found, follower.count, follower.occurring.why_none()
