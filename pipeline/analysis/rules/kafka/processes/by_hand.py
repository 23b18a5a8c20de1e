"""``commit_rejected`` of a client that is no member: it assigns partitions by hand, in a group that has members.

A consumer that uses assign() commits without a member id and without a generation. As long as the group is empty the
coordinator takes that; once a member has joined by subscribe() it answers UNKNOWN_MEMBER_ID. To rejoin, as is right for
a member that was put out, is no remedy: this client never joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from pipeline.analysis.rules.counted import finding, last_of_each, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.commits.commit_rejected import BY_HAND, CommitRejected
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.people import who
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import Tables
from pipeline.humanize import first_of, some

_OUTSIDE = """
    SELECT bool_and(coalesce(member_id, '') = '' AND coalesce(generation, -1) < 0) AS outside
    FROM (SELECT unnest($ids) AS exchange_id) AS own JOIN events USING (exchange_id)
    WHERE kind LIKE '%commit_rejected'
"""
_MEMBERS = """
    SELECT client_id, host_of(client) AS host FROM states
    WHERE group_id = $group AND cluster = $cluster AND error_code = 0 AND kind IN ('join', 'heartbeat')
        AND epoch_us(ts) BETWEEN $first_us AND $last_us
    GROUP BY ALL ORDER BY ALL
"""
_AROUND_US = 60_000_000
"""Members heartbeat within this time."""


@finds(CommitRejected)
def find(sources: Sources, settings: CommitRejected.Thresholds) -> Iterator[Finding]:
    """Apply the rule to refused commits that name no member; those of members are counted elsewhere."""
    refused = [one for one in sources.episodes.get(CommitRejected.name, ()) if CommitRejected.fires(one, settings)]
    episodes = _outside(last_of_each(refused), sources.tables)
    for episode, members in zip(episodes, _members(episodes, sources.tables), strict=True):
        yield _finding(episode, members, sources, settings)


def _outside(episodes: Sequence[Episode], tables: Tables) -> list[Episode]:
    """Those of clients that name no member."""
    answers = tables.of_each(_OUTSIDE, [{"ids": list(one.evidence)} for one in episodes])
    return [one for one, (row,) in zip(episodes, answers, strict=True) if row.outside]


def _members(episodes: Sequence[Episode], tables: Tables) -> list[list[str]]:
    """Who is a member meanwhile, ``client_id at host``, of each."""
    around = [
        {
            "group": one.group_id, "cluster": one.cluster, "first_us": one.first_us - _AROUND_US,
            "last_us": one.last_us + _AROUND_US,
        }
        for one in episodes
    ]  # fmt: skip
    return [[who(row.client_id, row.host) for row in rows] for rows in tables.of_each(_MEMBERS, around)]


def _finding(episode: Episode, members: list[str], sources: Sources, settings: CommitRejected.Thresholds) -> Finding:
    own = first_of(episode.clients)
    others = f"{some(members)} joined by subscribe()" if members else "others have joined by subscribe()"
    summary = (
        f"{own} commits offsets of group {episode.group_id} without being a member (assign()), and {others}: the "
        f"coordinator refused its commits {when(episode)} ({', '.join(episode.names)})."
    )
    advice = BY_HAND.format(who=own, group=quote(episode.group_id or "?"))
    made = finding(episode, "critical", summary, advice, sources, CommitRejected.least(settings))
    return replace(made, details={**made.details, "by_hand": True, "subscribed": members})
