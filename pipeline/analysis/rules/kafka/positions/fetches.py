"""Fetches of a group at one partition, in order of time: what was asked for, and what came back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from pipeline.analysis.rules.format import host_of
from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, Step
from pipeline.analysis.tables import Row


@dataclass(frozen=True, slots=True)
class Fetch:
    """A fetch of one partition.

    Attributes:
        us: µs since the epoch.
        client: ``ip:port``.
        at: the offset that was asked for, also where the fetch session knows it already (KIP-227); None: not known.
        next_offset: one past the last offset that came back; None: nothing came.
        records: that came back; None: not known.
        end: high watermark as known then.
        readable: the end of what this client may read: as ``end``, or the last stable offset.
    """

    us: int
    exchange_id: str
    client: str
    at: int | None
    next_offset: int | None
    records: int | None
    end: int | None
    readable: int | None

    def waits_at(self, offset: int) -> bool:
        """Whether there was something to read from this offset on."""
        return self.readable is not None and self.readable > offset


def fetches_of(rows: Iterable[Row]) -> list[Fetch]:
    """Fetches from rows of one client and partition, in order of time.

    Args:
        rows: with ``us``, ``exchange_id``, ``client``, ``asked``, ``next_offset``, ``records``, ``high_watermark``,
            ``last_stable_offset``, ``isolation_level``.
    """
    found: list[Fetch] = []
    at: int | None = None
    end: int | None = None
    stable: int | None = None
    for row in rows:
        at = row.asked if row.asked is not None else at
        if row.high_watermark is not None:
            end, stable = row.high_watermark, row.last_stable_offset
        is_committed_only = row.isolation_level == "read_committed" and stable is not None
        # Where what was asked for is not known, what comes back shows up to where.
        where = at if at is not None or row.next_offset is None else row.next_offset - 1
        found.append(
            Fetch(
                row.us, row.exchange_id, row.client, where, row.next_offset, row.records, end,
                stable if is_committed_only else end,
            )
        )  # fmt: skip
    return found


def by_host(rows: Iterable[Row]) -> Iterator[tuple[str, list[Fetch]]]:
    """The fetches of each host."""
    in_order = sorted(rows, key=lambda row: host_of(row.client))
    for host, some in groupby(in_order, key=lambda row: host_of(row.client)):
        yield host, fetches_of(some)


def by_connection(rows: Iterable[Row]) -> Iterator[tuple[str, list[Fetch]]]:
    """The fetches of each connection, with its host: each may be a reader of its own."""
    in_order = sorted(rows, key=lambda row: row.client)
    for client, some in groupby(in_order, key=lambda row: row.client):
        yield host_of(client), fetches_of(some)


_Client = tuple[str, str, str, str | None]


class Entries:
    """When clients entered their groups: by a new process, as far as connections show."""

    def __init__(self, steps: Iterable[Step]) -> None:
        """Of steps in the order of time."""
        self._times: dict[_Client, list[int]] = {}
        for step in steps:
            if step.what == ENTERS:
                client = step.cluster, step.group, step.host, step.client_id
                self._times.setdefault(client, []).append(step.us)

    def between(self, client: _Client, first_us: int, last_us: int) -> bool:
        """Whether a client (cluster, group, host, client id) entered in this time."""
        times = self._times.get(client, ())
        return bisect_right(times, last_us) > bisect_right(times, first_us)


def stays_us(fetches: Sequence[Fetch], until_us: int, ill: Container[int] = ()) -> list[int]:
    """How long a client stayed at offsets behind which records were, until it continued, before a time; µs.

    Args:
        fetches: in order of time.
        until_us: µs since the epoch.
        ill: offsets at which it waited for nothing: these are left out.
    """
    found: list[int] = []
    since: tuple[int, int] | None = None
    for one in fetches:
        if one.us > until_us:
            break
        if one.at is None:
            continue
        if since is not None and one.at > since[0]:
            if since[0] not in ill:
                found.append(one.us - since[1])
            since = None
        if since is None and one.waits_at(one.at):
            since = one.at, one.us
    return found


Place = tuple[str, str, int, str]
"""Cluster, topic, partition, group."""
place_of = attrgetter("cluster", "topic", "partition", "group_id")
Commits = Mapping[Place, Sequence[tuple[int, int, bool]]]
"""By place: time, offset, and whether it was committed then (else OffsetFetch stated it)."""
