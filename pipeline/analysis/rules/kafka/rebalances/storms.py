"""Groups that rebalance again and again without a deploy that explains it, by their generations.

A deploy, a change of scale and a rollback begin generations as well, but each instance comes once or twice. Whoever
comes again and again is the storm; so are generations that begin although no one came or went.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.analysis.libraries import COOPERATIVELY
from pipeline.analysis.rules.counted import clients, finding, last_of_each
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.rebalances.outcomes import have_read_all
from pipeline.analysis.rules.kafka.symptoms import JOINED_AT
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, pluralize, seconds, some

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.rebalances.rebalance_storm import RebalanceStorm

NAME = "rebalance_storm"
ADVICE = (
    "Now: stop or repair the member that comes and goes (named above): one that crashes and restarts, is slower than "
    "max.poll.interval.ms, or loses its session. Fix: fewer records per poll (max.poll.records), a longer "
    f"max.poll.interval.ms or session.timeout.ms; group.instance.id, {COOPERATIVELY} make what remains cheaper."
)
ADVICE_AGAIN = (
    "Now: nothing, if it is meant to run again and again; else see why it ends (its exit code, `kubectl logs "
    "--previous`). Fix: group.instance.id with a session.timeout.ms longer than a restart keeps its partitions for it."
)
ADVICE_UNSEEN = (
    "Now: look in the log of the group's coordinator for the reason of each rebalance: no member was seen to come or "
    "go. Fix: clients whose subscription or assignor metadata changes make a group rebalance as well: keep them "
    "constant. Connect workers join again whenever connectors or their tasks change."
)
ADVICE_DEPLOY = (
    "Now: nothing, if it was a deploy or a change of scale. Fix: group.instance.id with a session.timeout.ms longer "
    f"than a restart, {COOPERATIVELY} make it cheaper."
)

_FOLLOWING = 3
"""Generations without a change of members that may follow one: cooperative assignors hand over in a further one."""
BIRTHS, _DEATHS = 3, 2
"""Lives of an instance that a deploy and its rollback explain: this many begin, and this many end."""
_JOINING_US = 10_000_000
"""Members that come so shortly before or after the first and last generation of an episode came with it."""
_CHANGING = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d+")
"""What libraries and orchestrators put into client ids again at each start."""


@dataclass(frozen=True, slots=True)
class Life:
    """A member id of a group. Times are µs since the epoch.

    Attributes:
        client_id, client_ip: whose it is.
        first_us, last_us: when it was accepted first and last.
        client: ip:port by which it came.
        left: whether it left with a LeaveGroup.
    """

    member_id: str
    client_id: str
    client_ip: str
    first_us: int
    last_us: int
    client: str = ""
    left: bool = False


@dataclass(frozen=True, slots=True)
class Explained:
    """What a group went through in an episode.

    Attributes:
        total: generations; under KIP-848, joins.
        unexplained: those of them that no member's first or second coming or going explains.
        instances: how many members came or went.
        changed: the lives that began within the episode, or ended with a LeaveGroup.
        at_once: how many members lived at one time, at most.
        alone: generations that the group's only member began by joining again.
        comers: who came more often than a deploy explains, and how often, the most frequent first.
    """

    total: int
    unexplained: int
    instances: int
    comers: tuple[tuple[str, int], ...]
    changed: tuple[Life, ...] = ()
    at_once: int = 0
    alone: int = 0

    @property
    def is_alone(self) -> bool:
        """Whether the group's only member joins again and again."""
        return self.alone * 2 > self.total

    @property
    def is_of_several(self) -> bool:
        """Whether several instances that run side by side came or went: a deploy and a change of scale look so."""
        return self.at_once > 1 and max(len(set(map(_exact, self.changed))), at_once(self.changed)) > 1


def storms_of_generations(sources: Sources, settings: RebalanceStorm.Thresholds) -> Iterator[Finding]:
    """Apply the rule."""
    many = [e for e in sources.episodes.get(NAME, ()) if _is_often(e, settings)]
    if not many:
        return
    lives = lives_of(sources.tables, sorted({e.subject for e in many}))
    joins = _joins(sources.tables, many)
    explanations = {episode: _explained(episode, lives, joins) for episode in many}
    storms = [episode for episode in many if _is_storm(episode, *explanations[episode], settings)]
    stormy = {(episode.cluster, episode.subject) for episode in storms}
    deploys = [episode for episode in many if (episode.cluster, episode.subject) not in stormy]
    read_all = have_read_all(sources.tables, last_of_each(storms))
    for episode in last_of_each([*storms, *deploys]):
        is_storm = (episode.cluster, episode.subject) in stormy
        explained, unstable_us = explanations[episode]
        summary = _summary(episode, explained, unstable_us, is_storm=is_storm)
        severity, advice = ("warning", ADVICE) if is_storm else ("info", _advice(explained))
        made = finding(episode, severity, summary, advice, sources, settings.storm_generations)
        more = {
            "generations": explained.total, "unexplained": explained.unexplained, "instances": explained.instances,
            "unstable_us": unstable_us, "comers": dict(explained.comers), "is_deploy": not is_storm,
            "has_read_all": read_all.get((episode.cluster, episode.subject)),
        }  # fmt: skip
        yield replace(made, details={**made.details, **more})


def _explained(episode: Episode, lives: _Lives, joins: _Joins) -> tuple[Explained, int]:
    """What explains an episode, and for how long the group stood still, µs."""
    group = episode.cluster, episode.subject
    within = [one for one in lives[group] if one.first_us <= episode.last_us and one.last_us >= episode.first_us]
    most = at_once(within) if within else 0
    changed = tuple(one for one in lives[group] if _has_changed(one, episode))
    if _is_by_epochs(episode):
        return replace(explain_joins(within, episode), at_once=most, changed=changed), 0
    rounds = [one for one in joins[group] if episode.first_us <= one.last_us and one.first_us <= episode.last_us]
    explained = replace(explain_generations(within, rounds), at_once=most, changed=changed)
    return explained, sum(one.last_us - one.first_us for one in rounds)


def _has_changed(life: Life, episode: Episode) -> bool:
    """Whether a member was seen to come within an episode, or to leave."""
    comes = episode.first_us - _JOINING_US <= life.first_us <= episode.last_us + _JOINING_US
    return comes or (life.left and episode.first_us <= life.last_us <= episode.last_us + _JOINING_US)


def _is_storm(episode: Episode, explained: Explained, unstable_us: int, settings: RebalanceStorm.Thresholds) -> bool:
    longest_us = max(settings.storm_share * episode.span_us, settings.storm_interval_seconds * 1_000_000)
    return explained.unexplained >= settings.storm_unexplained or unstable_us >= longest_us


def _is_often(episode: Episode, settings: RebalanceStorm.Thresholds) -> bool:
    generations = episode.times if _is_by_epochs(episode) else episode.kinds
    longest_us = generations * settings.storm_interval_seconds * 1_000_000
    return generations >= settings.storm_generations and episode.span_us <= longest_us


def _is_by_epochs(episode: Episode) -> bool:
    return all(name.startswith(JOINED_AT) for name in episode.names)


def _summary(episode: Episode, explained: Explained, unstable_us: int, *, is_storm: bool) -> str:
    what = "epoch" if _is_by_epochs(episode) else "generation"
    when = f"{seconds(episode.span_us)}, from {clock(episode.first_us)} to {clock(episode.last_us)} UTC"
    went = f"Group {episode.subject} went through {pluralize(explained.total, what)} in {when}"
    if not is_storm:
        return f"{went}{_reason(explained)}."
    who = ", ".join(f"{name} came {pluralize(times, 'time')}" for name, times in explained.comers[:3])
    why = f"{who}." if who else f"{clients(episode)} joined {pluralize(episode.times, 'time')}."
    still = "" if _is_by_epochs(episode) else f"; its rebalances took {seconds(unstable_us)} together"
    return f"{went}{still}. {why}"


def _reason(explained: Explained) -> str:
    """Why a group rebalanced, as far as it was seen: who came or went."""
    if explained.is_of_several:
        why = "as in a deploy, a change of scale or a rollback"
        return f", because {pluralize(explained.instances, 'member')} came or went, {why}"
    if explained.is_alone:
        return f"; its only member joined again {pluralize(explained.alone, 'time')}"
    if not explained.changed:
        return "; no member was seen to come or go"
    names = some(f"{one.client_id} at {one.client_ip}" for one in explained.changed)
    left = sum(one.left for one in explained.changed)
    ends = f" and left {pluralize(left, 'time')}" if left else ""
    return f", because {names} joined {pluralize(len(explained.changed), 'time')}{ends}, one member after the other"


def _advice(explained: Explained) -> str:
    if explained.is_of_several:
        return ADVICE_DEPLOY
    return ADVICE_AGAIN if explained.changed and not explained.is_alone else ADVICE_UNSEEN


_Lives = defaultdict[tuple[str, str], list[Life]]


def lives_of(tables: Tables, groups: Sequence[str]) -> _Lives:
    """By cluster and group the members of some groups, in order of their beginning."""
    rows = tables.rows(
        """
        WITH stated AS (
            SELECT *, kind <> 'assignment' OR group_protocol <> 'classic' AS own FROM states
        )
        SELECT cluster, group_id, member_id, coalesce(arg_min(client_id, ts) FILTER (own), '?') AS client_id,
            coalesce(arg_min(host_of(client), ts) FILTER (own), '?') AS client_ip,
            min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us,
            coalesce(arg_min(client, ts) FILTER (own), '') AS client, bool_or(kind = 'leave') AS has_left
        FROM stated
        WHERE kind IN ('join', 'heartbeat', 'assignment', 'leave') AND coalesce(error_code, 0) = 0
            AND coalesce(member_id, '') <> '' AND group_id IN (SELECT unnest($groups))
        GROUP BY cluster, group_id, member_id ORDER BY first_us, member_id
        """,
        groups=list(groups),
    )
    found: _Lives = defaultdict(list)
    for row in rows:
        whose = row.member_id, row.client_id, row.client_ip
        life = Life(*whose, row.first_us, row.last_us, row.client, row.has_left)
        found[row.cluster, row.group_id].append(life)
    return found


@dataclass(frozen=True, slots=True)
class Round:
    """A generation: who joined it, and from the first request to the last answer (µs since the epoch)."""

    generation: int
    members: frozenset[str]
    first_us: int
    last_us: int


_Joins = defaultdict[tuple[str, str], list[Round]]


def _joins(tables: Tables, episodes: Sequence[Episode]) -> _Joins:
    rows = tables.rows(
        """
        SELECT joined.cluster, group_id, generation, list(DISTINCT member_id) AS members,
            min(epoch_us(coalesce(exchanges.request_ts, joined.ts))) AS first_us, max(epoch_us(joined.ts)) AS last_us
        FROM states AS joined LEFT JOIN exchanges USING (exchange_id)
        WHERE joined.kind = 'join' AND error_code = 0 AND group_id IN (SELECT unnest($groups))
            AND coalesce(generation, -1) >= 0
        GROUP BY ALL ORDER BY last_us, generation
        """,
        groups=sorted({e.subject for e in episodes}),
    )
    found: _Joins = defaultdict(list)
    for row in rows:
        round_ = Round(row.generation, frozenset(row.members), row.first_us, row.last_us)
        found[row.cluster, row.group_id].append(round_)
    return found


def explain_generations(lives: Sequence[Life], rounds: Sequence[Round]) -> Explained:
    """Which generations does the coming and going of members explain?

    Args:
        lives: of the group, in order of their beginning.
        rounds: its generations, in order of time.
    """
    surplus, run = _surplus(lives), runs_of(lives)
    unexplained, alone, following, known = 0, 0, 0, set[str]()
    changed: set[str] = set()
    for before, round_ in pairwise([Round(-1, frozenset(), 0, 0), *rounds]):
        came, gone = round_.members - known, before.members - round_.members
        known |= round_.members
        changed |= came | gone
        is_first_sight = {run.get(m) for m in round_.members}.isdisjoint(run.get(m) for m in before.members)
        comes, goes = (surplus.get(m, 0) <= BIRTHS for m in came), (surplus.get(m, 0) <= _DEATHS for m in gone)
        if is_first_sight or any(comes) or any(goes):
            following = 0
        elif not came and not gone and len(round_.members) == 1:
            alone += 1  # a Connect worker does so whenever connectors or their tasks change; it holds no member up
        elif not came and not gone and following < _FOLLOWING:
            following += 1
        else:
            unexplained += 1
            following = _FOLLOWING
    return Explained(len(rounds), unexplained, len(changed), _comers(lives, surplus), alone=alone)


def explain_joins(lives: Sequence[Life], episode: Episode) -> Explained:
    """Explain the joins of a KIP-848 group: each (by epoch 0) begins an epoch, and the other members read on."""
    surplus = _surplus(lives)
    begun = [one for one in lives if one.first_us >= episode.first_us]
    explained = sum(surplus[one.member_id] <= BIRTHS for one in begun)
    total = episode.times
    return Explained(total, max(total - explained, 0), len(begun), _comers(lives, surplus))


def _surplus(lives: Sequence[Life]) -> dict[str, int]:
    """By member id how often its instance has come by then, relative to how many of the kind live at once, rounded up.

    An instance is known by client id and host, or, where its client id changes with each start, by what stays of it.
    """
    surplus: dict[str, int] = {}
    run = runs_of(lives)
    for of in (_exact, by_host, _by_name):
        kinds: defaultdict[tuple[int, tuple[str, ...]], list[Life]] = defaultdict(list)
        for one in lives:
            kinds[run[one.member_id], of(one)].append(one)
        for alike in kinds.values():
            slots = at_once(alike)
            for rank, one in enumerate(alike):
                surplus[one.member_id] = max(surplus.get(one.member_id, 0), rank // slots + 1)
    return surplus


def runs_of(lives: Sequence[Life]) -> dict[str, int]:
    """By member id in which run of the group it was: a job ends when all have left, and starts over.

    Who comes again by the connection of one that left is no new process, so the run continues.
    """
    runs: dict[str, int] = {}
    number, until_us, has_ended, known = 0, 0, False, set[str]()
    for one in lives:
        if has_ended and one.first_us > until_us and one.client not in known:
            number, has_ended, known = number + 1, True, set()
        elif not known:
            has_ended = True
        runs[one.member_id] = number
        known.add(one.client)
        until_us, has_ended = max(until_us, one.last_us), has_ended and one.left
    return runs


def _exact(one: Life) -> tuple[str, ...]:
    return one.client_id, one.client_ip


def by_host(one: Life) -> tuple[str, ...]:
    """What stays of an instance that is started again on its host."""
    return _CHANGING.sub("#", one.client_id), one.client_ip


def _by_name(one: Life) -> tuple[str, ...]:
    return (_CHANGING.sub("#", one.client_id),)


def at_once(lives: Sequence[Life]) -> int:
    """How many lived at one time, at most."""
    changes = sorted([(one.first_us, 1) for one in lives] + [(one.last_us + 1, -1) for one in lives])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return max(most, 1)


def _comers(lives: Sequence[Life], surplus: dict[str, int]) -> tuple[tuple[str, int], ...]:
    times: defaultdict[str, int] = defaultdict(int)
    often: set[str] = set()
    for one in lives:
        name = f"{one.client_id} at {one.client_ip}"
        times[name] += 1
        if surplus[one.member_id] > BIRTHS:
            often.add(name)
    return tuple(sorted(((name, times[name]) for name in often), key=lambda item: (-item[1], item[0])))
