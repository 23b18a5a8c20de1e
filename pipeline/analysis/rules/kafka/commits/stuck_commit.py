"""Rule ``stuck_commit``: somebody keeps committing an old offset of a partition that others have long left behind.

Meaning: the committed offset jumps back again and again. Lag looks huge or flickers, and after the next restart or
rebalance the group reads from the old offset again: records are processed twice.
Evidence: one committer's accepted commits of one offset, at least ``stuck_commit_repeats`` times; between them another
committer has committed beyond it, each time further. Where one client does both (a hung worker thread), or where only
the group's fetch position moves on, that is evidence too, the latter from more repeats on, and only for longer than
such a stay usually lasts there: who commits the lowest offset that is finished stays at one while a record takes long.
Advice: stop the worker that repeats the offset; the commit's exchange names its client, member and address.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Annotated, NamedTuple

from pydantic import Field

from pipeline.analysis.claims.kafka.commits import STUCK_COMMIT
from pipeline.analysis.libraries import WHEN_REVOKED
from pipeline.analysis.rules.callers import Caller
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, PARTITION
from pipeline.analysis.rules.case.texts import SEEN, STANDS, Texts, groups
from pipeline.analysis.rules.kafka.commits.stuck_suspects import suspects
from pipeline.analysis.rules.kafka.links import BEHIND, STALE_OFFSET
from pipeline.analysis.rules.kafka.progress.group_texts import REVOKED
from pipeline.analysis.rules.kafka.progress.rhythm import patience_of
from pipeline.analysis.rules.kafka.thresholds import POLL_SECONDS
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources, State, Who
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Ratio, RuleThresholds, Seconds
from pipeline.analysis.tables import Row
from pipeline.humanize import clock, pluralize

NAME = "stuck_commit"
ADVICE = (
    "Now: restart the client that repeats the old offset: a worker of it still holds a partition that it no longer "
    "owns, or hangs in a retry. Until then a restart of the group reads again from the old offset. Fix: let workers "
    f"drop their work when the partition is revoked ({WHEN_REVOKED}), and commit only what is assigned."
)
_SLOW = (
    "Now: look what {who} is at work on, the record at offset {offset}; restart it if it hangs. Fix: bound what one "
    "record may take (timeouts of remote calls), and send what fails to a dead letter topic instead of retrying."
)
_PASSED = (
    "Now: nothing, {who} has moved on. Fix: if a record should not take so long, bound it (timeouts of remote calls): "
    "a restart meanwhile reads again all that was finished behind it."
)
_of_partition = attrgetter("cluster", "topic", "partition", "group_id")
_POSITIONS = """
    WITH positions AS (
        SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, "offset" AS committed,
            client_id, member_id, client, server, NULL::BIGINT AS fetched, NULL::BIGINT AS asked, place
        FROM events JOIN repeated USING (cluster, topic, partition, group_id)
        WHERE kind = 'committed' AND "offset" IS NOT NULL
        UNION ALL BY NAME
        SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, client_id,
            fetch_position AS fetched, event_offset AS asked, place
        FROM timeline JOIN repeated USING (cluster, topic, partition, group_id)
        WHERE kind = 'fetched' AND fetch_position IS NOT NULL
    ), counted AS (
        SELECT *, count(committed) OVER earlier AS commits, max(committed) OVER earlier AS highest FROM positions
        WINDOW earlier AS (
            PARTITION BY place ORDER BY us, exchange_id, ordinal, committed ROWS UNBOUNDED PRECEDING
        )
    )
    SELECT * EXCLUDE (commits, highest, place) FROM counted
    WINDOW meanwhile AS (PARTITION BY place, commits)
    QUALIFY committed IS NOT NULL OR bool_or(asked <= highest) OVER meanwhile
        OR row_number() OVER (PARTITION BY place, commits ORDER BY fetched DESC, coalesce(client_id, '') DESC) = 1
    ORDER BY cluster, topic, partition, group_id, us, exchange_id, ordinal, committed
"""
"""Of these, accepted commits and fetch positions; of the fetches between two commits the one that got furthest, where
none of them went back to what had been committed."""


_REMEMBERED = 200
"""Stays at an offset that a rhythm is known by."""


@dataclass(slots=True)
class _Repeat:
    """One offset of one committer: how often it was committed again after the group had moved further beyond it.

    Attributes:
        by_commit, by_fetch: how often others had committed, or the group had fetched, further meanwhile.
        furthest: up to where, and by whom (a Who), when it was committed last; the same of fetches (a client id).
        behind_us: when it was committed first although the group had fetched further.
        passed_us: when the same committer committed further, and did not come back; None: it did not.
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
    behind_us: int | None = None
    passed_us: int | None = None
    _moved_to: tuple[int, int] = (0, 0)

    def again(self, us: int, exchange_id: str, further: _Furthest) -> None:
        commit, fetch = further.commit, further.fetch
        reached = (self.committed if commit is None else commit[0], self.committed if fetch is None else fetch[0])
        if self.commits:
            self.by_commit += reached[0] > max(self.committed, self._moved_to[0])
            self.by_fetch += reached[1] > max(self.committed, self._moved_to[1])
        self._moved_to, self.passed_us = reached, None
        if self.behind_us is None and reached[1] > self.committed:
            self.behind_us = us
        self.commits.append((us, exchange_id))
        self.furthest, self.furthest_fetch = commit, fetch

    def back_to_it(self) -> None:
        """The committer fetches from the offset again, so it has not left it behind (forever: ``stalled``)."""
        self.by_fetch, self.behind_us = 0, None
        self._moved_to = self._moved_to[0], self.committed


@dataclass(slots=True)
class _Furthest:
    """How far the group has committed and fetched before."""

    commit: tuple[int, Who] | None = None
    fetch: tuple[int, str | None] | None = None

    def take(self, row: Row, who: Who) -> None:
        if row.committed is not None:
            mine = (row.committed, who)
            if self.commit is None or (row.committed >= self.commit[0] and _order(mine) > _order(self.commit)):
                self.commit = mine
        elif self.fetch is None or (row.fetched, row.client_id or "") > (self.fetch[0], self.fetch[1] or ""):
            self.fetch = (row.fetched, row.client_id)


def _order(committed: tuple[int, Who]) -> tuple[object, ...]:
    offset, who = committed
    return offset, who.client_id or "", who.member_id or "", who.address or ""


def _committer(case: Case) -> Caller:
    """Who commits the old offset, apart from who is held back by it."""
    stated = case.details.get("committer")
    if isinstance(stated, dict):
        name = stated.get("client_id")
        return next((one for one in case.callers if one.client_id == name), Caller(name, None))
    return case.first_caller


def _stuck(case: Case) -> str:
    details = case.details
    other = (details.get("other_committer") or {}).get("client_id")
    over = f", over the newer commits of {other}" if other else ", although the group has read on"
    old = details.get("old_offset")
    back = "an old offset" if old is None or len(case.bundle.findings) > 1 else f"offset {old}"
    return f"{_committer(case)} sets group {case.group} back to {back} of {case.places} again and again{over}"


def _stuck_now(case: Case) -> str:
    again = f": it would read {pluralize(case.records, 'record')} again" if case.records else ""
    return f"Restart {_committer(case)}. Do not restart the rest of group {case.group} before that{again}."


class StuckCommit(Rule):
    """Somebody keeps committing an old offset of a partition that others have long left behind."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        stuck_commit_repeats: Annotated[int, Field(ge=2)] = Field(
            default=3, description="Commits of the same old offset, between which another committer went beyond it"
        )
        stuck_commit_repeats_while_fetching: Annotated[int, Field(ge=2)] = Field(
            default=6,
            description="The same, where only the fetch position went beyond it: more, because an application that "
            "commits what its slowest worker has finished does this for a while in good health",
        )
        silence_periods: Ratio = SILENCE_PERIODS
        poll_seconds: Seconds = POLL_SECONDS

    name = "stuck_commit"
    title = "Offset stuck"
    protocol = "kafka"
    about = "commits"
    severities = ("critical", "info")
    reads = ("events", "timeline")
    advice = (ADVICE, _SLOW, _PASSED)
    urgency = STANDS
    texts = Texts(
        headline=_stuck,
        now=_stuck_now,
        fix=f"{REVOKED}. Worker threads must not commit by themselves: hand what they have done to the thread that "
        "polls.",
        reasoning=f"{SEEN}the broker accepted the old offset each time, and the newer ones between.",
        source=lambda case: str(_committer(case)),
        affected=groups,
    )
    records_come_again = True
    effects = (
        Link(("competing_committers", "commit_regressed", "rewound", *BEHIND), (GROUP, PARTITION), STALE_OFFSET),
    )
    claims = STUCK_COMMIT

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        repeated = suspects(sources.tables, settings.stuck_commit_repeats, settings.stuck_commit_repeats_while_fetching)
        if not repeated.num_rows:
            return []
        sources.tables.add("repeated", repeated)
        found = []
        for place, rows in groupby(sources.tables.each(_POSITIONS), key=_of_partition):
            repeats, last = _repeats(rows)
            stays = _Stays.of(repeats)
            enough = [(severity, one) for one in repeats if (severity := _severity(one, stays, settings)) is not None]
            if enough:
                severity, latest = max(enough, key=_rank)
                found.append(_finding(place, latest, severity, last, sources, settings))
        return found


def _rank(one: tuple[str, _Repeat]) -> tuple[bool, int, int, int]:
    """Which of a partition's repeats is reported: one that is a warning at least, the latest, the most frequent."""
    severity, repeat = one
    return severity != "info", max(us for us, _ in repeat.commits), len(repeat.commits), -repeat.committed


def _is_by_other(one: _Repeat, settings: StuckCommit.Thresholds) -> bool:
    return one.by_commit >= settings.stuck_commit_repeats - 1


class _Stays(NamedTuple):
    """How long the committers stayed at an offset while the group read on, by when they moved on; µs."""

    passed_us: Sequence[int]
    lasted_us: Sequence[int]

    @classmethod
    def of(cls, repeats: Iterable[_Repeat]) -> _Stays:
        found = sorted(
            (one.passed_us, one.passed_us - one.behind_us)
            for one in repeats
            if one.behind_us is not None and one.passed_us is not None
        )
        return cls([us for us, _ in found], [stay for _, stay in found])

    def until(self, us: int) -> tuple[Sequence[int], int]:
        """The latest of those that were over by then, and how many there were."""
        known = bisect_right(self.passed_us, us)
        return self.lasted_us[max(known - _REMEMBERED, 0) : known], known


def _severity(one: _Repeat, stays: _Stays, settings: StuckCommit.Thresholds) -> str | None:
    """None: it is nothing.

    Who stays at an offset while only reading continues may be at work on one record: it is given several times as long
    as such stays last there, and where that is not known it is reported for information for as long as a poll may take.
    """
    if _is_by_other(one, settings):
        return "critical"
    if one.behind_us is None or one.by_fetch < settings.stuck_commit_repeats_while_fetching - 1:
        return None
    begun_us, until_us = one.behind_us, one.commits[-1][0] if one.passed_us is None else one.passed_us
    latest, known = stays.until(begun_us)
    patience = patience_of(latest, known, 0, settings.silence_periods)
    if until_us - begun_us < (settings.poll_seconds * 1_000_000 if patience is None else patience):
        return "info" if patience is None and one.passed_us is None else None
    return "critical" if one.passed_us is None else "info"


def _repeats(rows: Iterable[Row]) -> tuple[list[_Repeat], Row]:
    """What was committed again, and the last commit of all."""
    found: dict[tuple[Who, int], _Repeat] = {}
    at: dict[Who, _Repeat] = {}
    further = _Furthest()
    last = None
    for row in rows:
        who = Who(row.client_id, row.member_id, row.client)
        if row.committed is not None:
            one = found.get((who, row.committed))
            if one is None:
                one = found[who, row.committed] = _Repeat(row.committed, who)
            one.again(row.us, row.exchange_id, further)
            before = at.get(who, one)
            if before.committed < one.committed:
                before.passed_us = row.us
            at[who] = one
            last = row
        elif row.asked is not None:
            for one in at.values():
                if row.asked <= one.committed and one.who.client_id == row.client_id:
                    one.back_to_it()
                    further.fetch = None
        further.take(row, who)
    return list(found.values()), last


def _state(cluster: str, repeat: _Repeat, real: int, last: Row, sources: Sources) -> State:
    """Over is when the committed offset is where the group is, and the old one has not come again for a while."""
    times = [us for us, _ in repeat.commits]
    quiet = sources.state(cluster, min(times), max(times), len(times), server=last.server)
    return "ongoing" if quiet == "resolved" and last.committed < real else quiet


def _finding(
    key: tuple[str, str, int, str], repeat: _Repeat, severity: str, last: Row, sources: Sources,
    settings: StuckCommit.Thresholds,
) -> Finding:  # fmt: skip
    cluster, topic, partition, group_id = key
    stuck, offset, place = repeat.who, repeat.committed, f"{topic}-{partition}"
    by_other = _is_by_other(repeat, settings)
    is_over = severity == "info" and repeat.passed_us is not None
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
        moved = f"although {other.client_id or NAMELESS} continued reading up to {real}"
    stands = "is stuck" if severity != "info" else "stayed" if is_over else "stays"
    summary = (
        f"Group {group_id} {stands} on {place}: {stuck} committed offset {offset} "
        f"{pluralize(times, 'time')} from {clock(first_us)} to {clock(last_us)} UTC, {moved}. "
        + (
            f"After a restart the group would read {pluralize(real - offset, 'record')} again."
            if repeat.passed_us is None or by_other
            else f"Then, at {clock(repeat.passed_us)} UTC, it moved on."
        )
    )
    advice = ADVICE if severity != "info" else _PASSED if is_over else _SLOW
    return Finding(
        rule=NAME, severity=severity, subject=f"{group_id}/{place}",
        state="resolved" if is_over else _state(cluster, repeat, real, last, sources),
        cluster=cluster, topic=topic, partition=partition, group_id=group_id,
        first_us=first_us, last_us=last_us, summary=summary,
        advice=advice.format(who=stuck, offset=offset),
        evidence=[exchange_id for _, exchange_id in commits[-settings.max_evidence :]],
        details={
            "old_offset": offset, "repeats": times, "committer": stuck.details(),
            "other_committer": other.details() if by_other else None, "reader": None if by_other else other.client_id,
            "real_position": real, "records_behind": real - offset,
            "enough_us": commits[least - 1][0],
        },
    )  # fmt: skip
