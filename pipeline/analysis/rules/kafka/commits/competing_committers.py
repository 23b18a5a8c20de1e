"""Rule ``competing_committers``: two clients commit the same partition of the same group by turns.

Meaning: two believe that they own the partition. Records are processed twice, and the committed offset is whoever
spoke last.
Evidence: a committer returns after another one had taken over (A … B … A), ``competing_returns`` times or more, without
a newer generation: each rebalance raises the generation (or member epoch), so that a partition that is handed over and
handed back in good order does not count; and without a time in between in which one of them committed alone. Returns
of one and the same committer count: one late commit after a handover (A … B … A … B) makes each of them return once.
Advice: see ADVICE.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from shlex import quote
from statistics import median
from typing import Any

from pydantic import Field

from pipeline.analysis.claims.kafka.commits import COMPETING_COMMITTERS
from pipeline.analysis.libraries import WHEN_REVOKED
from pipeline.analysis.rules.case.case import Case, arg
from pipeline.analysis.rules.case.entities import GROUP, PARTITION, names_of_each
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts
from pipeline.analysis.rules.format import times
from pipeline.analysis.rules.kafka.links import BEHIND, STALE_OFFSET
from pipeline.analysis.rules.kafka.progress.group_texts import MEMBERS, REVOKED
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.analysis.rules.model import Finding, Sources, State, Who
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Count, Ratio, RuleThresholds
from pipeline.analysis.tables import Row
from pipeline.humanize import clock, joined

NAME = "competing_committers"
ADVICE = (
    "Now: find out which of the clients owns the partition (`kafka-consumer-groups.sh --bootstrap-server BROKER "
    "--describe --group {group} --members --verbose`) and stop the other. Fix: end a worker's work when its partition "
    f"is revoked ({WHEN_REVOKED}); give each application that assigns partitions by hand a group.id "
    "of its own; set offsets with a tool only while the group is stopped."
)
_REMEMBERED = 20
"""Of the times between two commits of one committer, this many show what is usual."""
_of_partition = attrgetter("cluster", "topic", "partition", "group_id")
_COMMITS = """
    SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, client_id, member_id, client,
        coalesce(generation, -1) AS generation
    FROM events WHERE kind = 'committed' AND "offset" IS NOT NULL
    ORDER BY cluster, topic, partition, group_id, us, exchange_id, ordinal
"""


@dataclass(slots=True)
class _Bout:
    """A time in which several commit one partition. Times are µs since the epoch.

    Attributes:
        seen: who committed, by how often.
        returns: who came back after another one, when, and by which exchange.
        last_us: the last commit of any.
        over_us: when one had committed alone for several of its periods; None: it continues.
    """

    seen: Counter[Who] = field(default_factory=Counter)
    returns: list[tuple[int, str, Who]] = field(default_factory=list)
    last_us: int = 0
    over_us: int | None = None

    def enough_us(self, returns: int) -> int | None:
        """When one committer had returned so often; None: none did."""
        by_who: Counter[Who] = Counter()
        for us, _, who in self.returns:
            by_who[who] += 1
            if by_who[who] >= returns:
                return us
        return None

    @property
    def span(self) -> tuple[int, int]:
        """From the first return to the last."""
        return self.returns[0][0], self.returns[-1][0]


def bouts(commits: Iterable[Row], periods: float, longest_us: float) -> list[_Bout]:
    """The times in which commits of one partition came from several by turns.

    One is over when somebody commits alone for ``periods`` of what usually is between two of its commits. Where the
    others commit less often, theirs counts, but no more than ``longest_us``, which also counts for who came once.

    Args:
        commits: of the partition, in the order of time.
        periods: see above.
        longest_us: the pause after which what comes again is counted again.
    """
    found: list[_Bout] = []
    now, last, generation = _Bout(), None, -1
    gaps: defaultdict[Who, deque[int]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
    before: dict[Who, int] = {}
    alone_us, alone = 0, 0
    for row in commits:
        who = Who(row.client_id, row.member_id, row.client)
        if who in before:
            gaps[who].append(row.us - before[who])
        before[who] = row.us
        if who != last:
            if who in now.seen and row.generation <= generation:
                now.returns.append((row.us, row.exchange_id, who))
            alone_us, alone = row.us, 0
        alone, last, generation = alone + 1, who, row.generation
        now.seen[who] += 1
        now.last_us = row.us
        if len(now.seen) > 1 and alone >= KNOWN_RHYTHM:
            others = (median(gaps[o]) if now.seen[o] > 1 and gaps[o] else longest_us for o in now.seen if o != who)
            if row.us - alone_us >= max(periods * median(gaps[who]), min(periods * max(others), longest_us)):
                now.over_us = row.us
                found.append(now)
                now = _Bout(Counter([who]))
    return [bout for bout in (*found, now) if bout.returns]


def _rivals(case: Case) -> str:
    committers = case.details.get("committers") or ()
    ways = [_way(one, committers) for one in committers]
    return (
        f"{joined([f'{name}{way}' for name, way in zip(names_of_each(committers), ways, strict=True)])} commit "
        f"{case.places} of group {case.group} by turns, over each other"
    )


def _way(one: Mapping[str, Any], committers: Sequence[Mapping[str, Any]]) -> str:
    """Who is a member and who is not, where both are among them."""
    if len({bool(other.get("member_id")) for other in committers}) < 2:
        return ""
    return " by subscribe()" if one.get("member_id") else " by assign(), without being a member,"


class CompetingCommitters(Rule):
    """Several committers commit offsets of one partition for one group by turns."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        competing_returns: Count = Field(
            default=2, description="Times that one committer comes back after another took over, without a rebalance"
        )
        silence_periods: Ratio = SILENCE_PERIODS

    name = "competing_committers"
    title = "Competing committers"
    protocol = "kafka"
    about = "commits"
    severities = ("warning",)
    reads = ("events",)
    advice = (ADVICE,)
    urgency = LOSES
    texts = Texts(
        headline=_rivals,
        now=lambda case: (
            f"Find out who owns the partition (`{MEMBERS} {arg(case.group)} --members --verbose`) and stop the other."
        ),
        fix=f"{REVOKED}; give applications that are not one another's copies a group.id of their own, and do not mix "
        "assign() with subscribe() in one group.",
        reasoning=f"{SEEN}both commit, and are accepted, without a rebalance between.",
    )
    records_come_again = True
    effects = (Link(("commit_regressed", "rewound", *BEHIND), (GROUP, PARTITION), STALE_OFFSET),)
    claims = COMPETING_COMMITTERS

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        found = []
        longest_us = settings.episode_pause_seconds * 1_000_000
        for place, commits in groupby(sources.tables.each(_COMMITS), key=_of_partition):
            all_bouts = bouts(commits, settings.silence_periods, longest_us)
            enough = [bout for bout in all_bouts if bout.enough_us(settings.competing_returns) is not None]
            if enough:
                found.append(_finding(place, enough, sources, settings))
        return found


def _in_order(whos: Iterable[Who]) -> list[Who]:
    return sorted(whos, key=lambda who: (who.client_id or "", who.member_id or "", who.address))


def _finding(
    key: tuple[str, str, int, str],
    all_bouts: Sequence[_Bout],
    sources: Sources,
    settings: CompetingCommitters.Thresholds,
) -> Finding:
    cluster, topic, partition, group_id = key
    bout = all_bouts[-1]
    returning = {who for _, _, who in bout.returns}
    rivals = _in_order(returning if len(returning) > 1 else bout.seen)
    place, returns = f"{topic}-{partition}", bout.returns
    first_us, last_us = bout.span
    state: State = "resolved"
    if bout.over_us is None:  # it continues for as long as anybody commits
        state = sources.state_unhealed(cluster, first_us, bout.last_us, bout.seen.total())
    over = "" if bout.over_us is None else f" At {clock(bout.over_us)} UTC one of them had committed alone for a while."
    summary = (
        f"{' and '.join(map(str, rivals))} commit {place} of group {group_id} by turns: "
        f"{times(len(returns), first_us, last_us)} one came back after the other, without a rebalance between.{over}"
    )
    return Finding(
        rule=NAME, severity="warning", subject=f"{group_id}/{place}",
        state=state,
        cluster=cluster, topic=topic, partition=partition, group_id=group_id, first_us=first_us, last_us=last_us,
        summary=summary, advice=ADVICE.format(group=quote(group_id)),
        evidence=[exchange_id for _, exchange_id, _ in returns[-settings.max_evidence :]],
        details={
            "committers": [who.details() for who in rivals], "returns": len(returns),
            "alone_us": bout.over_us, **earlier(each.span for each in all_bouts),
            "enough_us": bout.enough_us(settings.competing_returns),
        },
    )  # fmt: skip
