"""The partitions that a fetch session holds (KIP-227): follows one session through its fetches, day by day.

A full fetch (epoch 0) lists every partition; the incremental ones after it, each of an epoch one higher, only what is
new, moved or taken out. So a partition without news is in no frame, and is fetched all the same. A missing epoch
means that frames were lost: from then on until the next full fetch the set is what is known, and is marked so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import NamedTuple

_LAST_EPOCH = 2**31 - 1
_DAY = timedelta(days=1)


class Part(NamedTuple):
    """What a fetch states about one partition.

    Attributes:
        offset: fetched from, as in the request; None if only the response names the partition.
        next_offset: one past the last record of the response.
        forgotten: taken out of the session by this fetch.
    """

    topic: str | None
    topic_id: str | None
    partition: int
    isolation_level: str | None
    offset: int | None
    next_offset: int | None
    forgotten: bool

    @property
    def place(self) -> tuple[str | None, int]:
        """The partition within its session, whether or not the id has got its name meanwhile."""
        return self.topic_id or self.topic, self.partition


@dataclass(frozen=True, slots=True)
class SessionFetch:
    """One fetch of the session, on a UTC day; ``epoch`` 0 begins it, -1 ends it.

    Attributes:
        failed: the broker refused the whole fetch, which ends the session for the client.
    """

    day: date
    ts_us: int
    client: str
    client_id: str | None
    epoch: int
    failed: bool
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A partition in the session on one day (a row of ``silver.fetch_sessions`` without cluster and session)."""

    day: date
    client: str
    client_id: str | None
    topic: str | None
    topic_id: str | None
    partition: int
    isolation_level: str | None
    first_us: int
    last_us: int
    fetch_offset: int | None
    fetches: int
    session_epoch: int
    is_open: bool
    complete: bool


@dataclass(slots=True)
class _Entry:
    """A partition while it is in the session; ``since`` counts fetches of the day, None before the first of them."""

    part: Part
    offset: int | None
    since: int | None = None
    first_us: int = 0


@dataclass(slots=True)
class _Session:
    complete: bool
    epoch: int | None = None
    day: date | None = None
    last: SessionFetch | None = None
    count: int = 0
    entries: dict[tuple[str | None, int], _Entry] = field(default_factory=dict)
    rows: list[Held] = field(default_factory=list)
    most: int | None = None

    def take(self, fetch: SessionFetch) -> None:
        if fetch.day != self.day:
            self._turn_to(fetch.day)
        if fetch.epoch <= 0:
            self._end()
        if fetch.epoch < 0:
            return
        if fetch.epoch == 0:
            self.complete = True
        elif fetch.epoch not in (self.epoch, _after(self.epoch)):  # the same again: seen by two agents
            self.complete = False
        if fetch.failed:
            self._end()
            return
        for part in fetch.parts:
            if part.forgotten and part.place in self.entries:
                self._emit(self.entries.pop(part.place), is_open=False)
        self.epoch, self.last, self.count = fetch.epoch, fetch, self.count + 1
        for part in fetch.parts:
            if not part.forgotten:
                self._add(part)
        for entry in self.entries.values() if self.count == 1 else ():
            self._begin(entry)

    def _add(self, part: Part) -> None:
        entry = self.entries.get(part.place)
        position = part.offset if part.next_offset is None else part.next_offset
        if entry is None:
            if part.offset is None:  # answered, but never asked for: its beginning was not seen
                self.complete = False
            entry = self.entries[part.place] = _Entry(part, position)
        elif position is not None:
            entry.offset = position
        if entry.since is None:
            self._begin(entry)

    def _begin(self, entry: _Entry) -> None:
        assert self.last is not None  # noqa: S101 - only called after a fetch
        if entry.since is None:
            entry.since, entry.first_us = self.count, self.last.ts_us

    def _emit(self, entry: _Entry, *, is_open: bool) -> None:
        if entry.since is None or self.last is None:
            return
        self.rows.append(
            Held(
                self.last.day, self.last.client, self.last.client_id, entry.part.topic, entry.part.topic_id,
                entry.part.partition, entry.part.isolation_level, entry.first_us, self.last.ts_us, entry.offset,
                self.count - entry.since + 1, self.last.epoch, is_open, self.complete,
            )
        )  # fmt: skip

    def _end(self) -> None:
        for entry in self.entries.values():
            self._emit(entry, is_open=False)
        self.entries, self.epoch, self.complete = {}, None, False

    def _turn_to(self, day: date) -> None:
        """Close the day; a session that pauses for a whole day is over, brokers forget it after minutes.

        A day takes a row for each partition: of one with too many days the partitions are forgotten, too.
        """
        self.close()
        is_too_much = self.most is not None and len(self.rows) + len(self.entries) > self.most
        if is_too_much or (self.day is not None and day - self.day > _DAY):
            self.entries, self.epoch, self.complete = {}, None, False
        for entry in self.entries.values():
            entry.since = None
        self.day, self.last, self.count = day, None, 0

    def close(self) -> None:
        """Write down what is still in the session."""
        for entry in self.entries.values():
            self._emit(entry, is_open=True)


def follow(fetches: Iterable[SessionFetch], carried: Iterable[Held] = (), most: int | None = None) -> list[Held]:
    """The partitions that a session held, a row for each day and each time that one was in it.

    Args:
        fetches: of one session, in the order of time.
        carried: the open rows of the day before the first fetch, to continue from.
        most: rows from which on no further day is begun with what is in the session; None: however many.
    """
    before = list(carried)
    session = _Session(complete=bool(before) and all(held.complete for held in before), most=most)
    for held in before:
        part = Part(held.topic, held.topic_id, held.partition, held.isolation_level, held.fetch_offset, None, False)
        session.entries[part.place] = _Entry(part, held.fetch_offset)
        session.day, session.epoch = held.day, held.session_epoch
    for fetch in fetches:
        session.take(fetch)
    session.close()
    return session.rows


def _after(epoch: int | None) -> int | None:
    return None if epoch is None else 1 if epoch == _LAST_EPOCH else epoch + 1
