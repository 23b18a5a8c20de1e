"""Rule ``competing_committers``: two clients commit the same partition of the same group by turns.

Meaning: two believe that they own the partition. Records are processed twice, and the committed offset is whoever
spoke last.
Evidence: a committer returns after another one had taken over (A … B … A), ``competing_returns`` times or more, without
a newer generation: each rebalance raises the generation (or member epoch), so that a partition that is handed over and
handed back in good order does not count.
Advice: see ADVICE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from pipeline.analysis.rules.model import Finding, Sources, Who, clock
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import Row
from pipeline.finding_settings import FindingSettings

NAME = "competing_committers"
ADVICE = (
    "Now: find out which of the clients owns the partition (`kafka-consumer-groups.sh --describe --group G --members "
    "--verbose`) and stop the other. Fix: end a worker's work when its partition is revoked (onPartitionsRevoked, "
    "rebalance_cb); give each application that assigns partitions by hand a group.id of its own; set offsets with a "
    "tool only while the group is stopped."
)
_of_partition = attrgetter("cluster", "topic", "partition", "group_id")
_COMMITS = """
    SELECT cluster, topic, partition, group_id, epoch_us(ts) AS us, exchange_id, ordinal, client_id, member_id, client,
        coalesce(generation, -1) AS generation
    FROM events WHERE kind = 'committed' AND "offset" IS NOT NULL
    ORDER BY cluster, topic, partition, group_id, us, exchange_id, ordinal
"""


@dataclass(slots=True)
class _Committers:
    """Who committed one partition, and who came back after another (times µs since the epoch, exchange ids)."""

    seen: set[Who] = field(default_factory=set)
    returning: set[Who] = field(default_factory=set)
    returns: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, commits: Iterable[Row]) -> _Committers:
        found = cls()
        last, generation = None, -1
        for row in commits:
            who = Who(row.client_id, row.member_id, row.client)
            is_rebalanced = row.generation > generation
            if last is not None and who != last and who in found.seen and not is_rebalanced:
                found.returning.add(who)
                found.returns.append((row.us, row.exchange_id))
            found.seen.add(who)
            last, generation = who, row.generation
        found.returns.sort()
        return found


RULE = Rule(
    "competing_committers",
    "kafka",
    ("warning",),
    "Several committers commit offsets of one partition for one group by turns.",
    ("competing_returns",),
    reads=("events",),
)


@finds(RULE)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule."""
    found = []
    for place, commits in groupby(sources.tables.each(_COMMITS), key=_of_partition):
        committers = _Committers.of(commits)
        if len(committers.returns) >= settings.competing_returns:
            found.append(_finding(place, committers, sources, settings))
    return found


def _in_order(whos: Iterable[Who]) -> list[Who]:
    return sorted(whos, key=lambda who: (who.client_id or "", who.member_id or "", who.address))


def _finding(
    key: tuple[str, str, int, str], committers: _Committers, sources: Sources, settings: FindingSettings
) -> Finding:
    cluster, topic, partition, group_id = key
    rivals = _in_order(committers.returning if len(committers.returning) > 1 else committers.seen)
    place, returns = f"{topic}-{partition}", committers.returns
    first_us, last_us = returns[0][0], returns[-1][0]
    summary = (
        f"{' and '.join(map(str, rivals))} commit {place} of group {group_id} by turns: {len(returns)} times from "
        f"{clock(first_us)} to {clock(last_us)} UTC one came back after the other, without a rebalance between."
    )
    return Finding(
        rule=NAME, severity="warning", subject=f"{group_id}/{place}",
        state=sources.state(cluster, first_us, last_us, len(returns)),
        cluster=cluster, topic=topic, partition=partition, group_id=group_id, first_us=first_us, last_us=last_us,
        summary=summary, advice=ADVICE,
        evidence=[exchange_id for _, exchange_id in returns[-settings.max_evidence :]],
        details={
            "committers": [who.details() for who in rivals], "returns": len(returns),
            "enough_us": returns[settings.competing_returns - 1][0],
        },
    )  # fmt: skip
