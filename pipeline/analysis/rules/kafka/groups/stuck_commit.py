"""Rule ``stuck_commit``: somebody keeps committing an old offset of a partition that others have long left behind.

Meaning: the committed offset jumps back again and again. Lag looks huge or flickers, and after the next restart or
rebalance the group reads from the old offset again: records are processed twice.
Evidence: one committer's accepted commits of one offset, at least ``stuck_commit_repeats`` times; between them another
committer has committed beyond it, each time further. Where one client does both (a hung worker thread), or where only
the group's fetch position moves on, that is evidence too, the latter from more repeats on.
Advice: stop the worker that repeats the offset; the commit's exchange names its client, member and address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from pipeline.analysis.rules.model import Finding, Sources, State, Who, clock
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import Row
from pipeline.finding_settings import FindingSettings

NAME = "stuck_commit"
ADVICE = (
    "Now: restart the client that repeats the old offset: a worker of it still holds a partition that it no longer "
    "owns, or hangs in a retry. Until then a restart of the group reads again from the old offset. Fix: let workers "
    "drop their work when the partition is revoked (Java ConsumerRebalanceListener.onPartitionsRevoked, librdkafka "
    "rebalance_cb), and commit only what is assigned."
)
_of_partition = attrgetter("cluster", "topic", "partition", "group_id")
_POSITIONS = """
    SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, "offset" AS committed,
        client_id, member_id, client, server, NULL::BIGINT AS fetched
    FROM events WHERE kind = 'committed' AND "offset" IS NOT NULL
    UNION ALL BY NAME
    SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, client_id,
        fetch_position AS fetched
    FROM timeline WHERE kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL
    ORDER BY cluster, topic, partition, group_id, us, exchange_id, ordinal, committed
"""
"""Accepted commits and fetch positions of each group and partition."""


@dataclass(slots=True)
class _Repeat:
    """One offset of one committer: how often it was committed again after the group had moved further beyond it.

    Attributes:
        by_commit, by_fetch: how often others had committed, or the group had fetched, further meanwhile.
        furthest: up to where, and by whom (a Who), when it was committed last; the same of fetches (a client id).
        moved_to: how far the group was at the last of them.
        commits: times, µs since the epoch, and exchange ids.
    """

    committed: int
    who: Who
    by_commit: int = 0
    by_fetch: int = 0
    furthest: tuple[int, Who] | None = None
    furthest_fetch: tuple[int, str | None] | None = None
    commits: list[tuple[int, str]] = field(default_factory=list)
    _moved_to: tuple[int, int] = (0, 0)

    def again(self, us: int, exchange_id: str, further: _Furthest) -> None:
        commit, fetch = further.commit, further.fetch
        reached = (self.committed if commit is None else commit[0], self.committed if fetch is None else fetch[0])
        if self.commits:
            self.by_commit += reached[0] > max(self.committed, self._moved_to[0])
            self.by_fetch += reached[1] > max(self.committed, self._moved_to[1])
        self._moved_to = reached
        self.commits.append((us, exchange_id))
        self.furthest, self.furthest_fetch = commit, fetch


@dataclass(slots=True)
class _Furthest:
    """How far the group has committed and fetched before."""

    commit: tuple[int, Who] | None = None
    fetch: tuple[int, str | None] | None = None

    def take(self, row: Row, who: Who) -> None:
        if row.committed is not None:
            mine = (row.committed, who)
            if self.commit is None or _order(mine) > _order(self.commit):
                self.commit = mine
        elif self.fetch is None or (row.fetched, row.client_id or "") > (self.fetch[0], self.fetch[1] or ""):
            self.fetch = (row.fetched, row.client_id)


def _order(committed: tuple[int, Who]) -> tuple[object, ...]:
    offset, who = committed
    return offset, who.client_id or "", who.member_id or "", who.address or ""


RULE = Rule(
    "stuck_commit",
    "kafka",
    ("critical",),
    "Somebody keeps committing an old offset of a partition that others have long left behind.",
    ("stuck_commit_repeats", "stuck_commit_repeats_while_fetching"),
    reads=("events", "timeline"),
)


@finds(RULE)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule."""
    found = []
    for place, rows in groupby(sources.tables.each(_POSITIONS), key=_of_partition):
        repeats, last = _repeats(rows)
        enough = [one for one in repeats if _is_enough(one, settings)]
        if enough:
            latest = max(enough, key=lambda one: (max(us for us, _ in one.commits), len(one.commits), -one.committed))
            found.append(_finding(place, latest, last, sources, settings))
    return found


def _is_enough(one: _Repeat, settings: FindingSettings) -> bool:
    by_other = one.by_commit >= settings.stuck_commit_repeats - 1
    return by_other or one.by_fetch >= settings.stuck_commit_repeats_while_fetching - 1


def _repeats(rows: Iterable[Row]) -> tuple[Iterable[_Repeat], Row]:
    """What was committed again, and the last commit of all."""
    found: dict[tuple[Who, int], _Repeat] = {}
    further = _Furthest()
    last = None
    for row in rows:
        who = Who(row.client_id, row.member_id, row.client)
        if row.committed is not None:
            one = found.setdefault((who, row.committed), _Repeat(row.committed, who))
            one.again(row.us, row.exchange_id, further)
            last = row
        further.take(row, who)
    return found.values(), last


def _state(cluster: str, repeat: _Repeat, real: int, last: Row, sources: Sources) -> State:
    """Over is when the committed offset is where the group is, and the old one has not come again for a while."""
    times = [us for us, _ in repeat.commits]
    quiet = sources.state(cluster, min(times), max(times), len(times), server=last.server)
    return "open" if quiet == "closed" and last.committed < real else quiet


def _finding(
    key: tuple[str, str, int, str], repeat: _Repeat, last: Row, sources: Sources, settings: FindingSettings
) -> Finding:
    cluster, topic, partition, group_id = key
    stuck, offset, place = repeat.who, repeat.committed, f"{topic}-{partition}"
    by_other = repeat.by_commit >= settings.stuck_commit_repeats - 1
    least = settings.stuck_commit_repeats if by_other else settings.stuck_commit_repeats_while_fetching
    commits = sorted(repeat.commits)
    first_us, last_us, times = commits[0][0], commits[-1][0], len(commits)
    if by_other and repeat.furthest is not None:
        real, other = repeat.furthest
        mover = "another worker of the same client" if other == stuck else str(other)
        moved = f"although {mover} had committed up to {real} in between"
    else:
        real, reader = repeat.furthest_fetch or (offset, None)
        other = Who(reader, None, "")
        moved = f"although {other.client_id} went on reading up to {real}"
    summary = (
        f"Group {group_id} is stuck on {place}: {stuck} committed offset {offset} {times} times "
        f"from {clock(first_us)} to {clock(last_us)} UTC, {moved}. "
        f"After a restart the group would read {real - offset} records again."
    )
    return Finding(
        rule=NAME, severity="critical", subject=f"{group_id}/{place}",
        state=_state(cluster, repeat, real, last, sources),
        cluster=cluster, topic=topic, partition=partition, group_id=group_id,
        first_us=first_us, last_us=last_us, summary=summary,
        advice=ADVICE, evidence=[exchange_id for _, exchange_id in commits[-settings.max_evidence :]],
        details={
            "old_offset": offset, "repeats": times, "committer": stuck.details(),
            "other_committer": other.details() if by_other else None, "reader": None if by_other else other.client_id,
            "real_position": real, "records_behind": real - offset,
            "enough_us": commits[least - 1][0],
        },
    )  # fmt: skip
