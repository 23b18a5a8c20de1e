"""Rules about groups that do not get on: they lag more and more, stop, stall, go back, or leave out a partition.

One query cuts ``gold.offset_timeline`` into short spans of time and hands each group's spans of one topic to
:mod:`pipeline.analysis.rules.kafka.progress.evaluate`. Beside each finding is what Burrow would report at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.positions.beyond_end import Place, beyond_ends
from pipeline.analysis.rules.kafka.positions.lost_commits import lost_commits
from pipeline.analysis.rules.kafka.progress import burrow, texts, track
from pipeline.analysis.rules.kafka.progress.evaluate import judge_lives
from pipeline.analysis.rules.kafka.progress.points import group_points, lives_of, markers_of, points_of, without_falls
from pipeline.analysis.rules.kafka.progress.track import Point, Trouble
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources, State
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.humanize import clock, first_of

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds

__all__ = ["burrow_partition", "burrow_state", "find", "group_points", "points_of"]

_of_group = attrgetter("cluster", "topic", "group_id")


@dataclass(frozen=True, slots=True)
class _Found:
    """A trouble of a group with one topic, and what Burrow would report of it."""

    cluster: str
    topic: str
    group_id: str
    trouble: Trouble
    burrow: Mapping[str, Any]


def find(sources: Sources, settings: ProgressThresholds) -> list[Finding]:
    """Apply the rules."""
    members, markers, lost = lives_of(sources), markers_of(sources.tables), lost_commits(sources)
    healed = {one.place: int(one.row.end) for one in beyond_ends(sources) if one.healed_us is not None}
    found = []
    for (cluster, topic, group_id), rows in groupby(group_points(sources.tables), key=_of_group):
        partitions = points_of(rows)
        for partition, points in partitions.items():
            if (one := lost.get((cluster, topic, partition, group_id))) is not None:
                partitions[partition] = without_falls(points, one[0].committed, one[0].us)
        troubles = judge_lives(
            partitions, sources.made_anew.get((cluster, topic), ()), settings, sources.ends.get(cluster, 0),
            members.get((cluster, group_id)), markers.get((cluster, topic)), topic,
        )  # fmt: skip
        troubles = [one for one in troubles if not _is_from_beyond(one, healed, (cluster, topic, group_id))]
        in_order = sorted(troubles, key=lambda t: (t.rule, -1 if t.partition is None else t.partition))
        beside = _burrow_partitions(partitions) if in_order else {}
        found += [_Found(cluster, topic, group_id, one, _beside_burrow(beside, one)) for one in in_order]
    found = _with_committers(_with_names(found, sources.tables), sources.tables)
    seen = _coordinators_seen(sources, [one for one in found if one.trouble.is_open])
    return [_judged(one, seen, sources) for one in found]


def _is_from_beyond(one: Trouble, ends: Mapping[Place, int], whose: tuple[str, str, str]) -> bool:
    """Whether a group only came back from a commit beyond the end of the log, which ``offset_reset`` reports."""
    cluster, topic, group_id = whose
    before = one.figures.get("before")
    if one.rule not in (track.REWOUND, track.COMMIT_REGRESSED) or one.partition is None or not isinstance(before, int):
        return False
    end = ends.get((cluster, topic, one.partition, group_id))
    return end is not None and before > end


_MEMBERS = """
    WITH seen AS (
        SELECT member_id, coalesce(arg_max(client_id, ts), '') AS client_id, arg_max(client, ts) AS address,
            arg_max(host_of(client), ts) AS host, max(epoch_us(ts)) AS seen_us
        FROM states
        WHERE cluster = $cluster AND group_id = $group AND member_id <> ''
            AND coalesce(error_code, 0) = 0 AND (kind IN ('join', 'heartbeat') OR group_protocol <> 'classic')
        GROUP BY member_id
    )
    SELECT *, count(*) OVER (PARTITION BY client_id, host) > 1 AS has_twins FROM seen
"""
"""What members stated themselves; who hands out assignments in the classic protocol is another one."""


def _members_of(one: _Found) -> list[str]:
    """The ids of the members that a trouble names."""
    owner = one.trouble.figures.get("owner") if one.trouble.rule == track.DROPPED else None
    members = one.trouble.figures.get("members") or ([owner] if owner else [])
    return [str(name) for name in members] if isinstance(members, Sequence) else []


def _with_names(found: Sequence[_Found], tables: Tables) -> list[_Found]:
    """With the client ids and hosts of the members that troubles name, and when these were seen last."""
    groups = list(dict.fromkeys((one.cluster, one.group_id) for one in found if _members_of(one)))
    asked = [{"cluster": cluster, "group": group} for cluster, group in groups]
    known = {
        group: {row.member_id: row for row in rows}
        for group, rows in zip(groups, tables.of_each(_MEMBERS, asked), strict=True)
    }
    return [_named(one, known.get((one.cluster, one.group_id), {})) for one in found]


def _named(one: _Found, known: Mapping[str, Row]) -> _Found:
    members = _members_of(one)
    if not members:
        return one
    rows = [known[name] for name in sorted(set(members)) if name in known]
    owner = one.trouble.figures.get("owner") if one.trouble.rule == track.DROPPED else None
    names = sorted({who(row.client_id, row.host) for row in rows})
    if "shape" in one.trouble.figures:
        client = {"client_id": rows[0].client_id} if rows else {}
        names = names or [str(one.trouble.figures.get("client_id") or NAMELESS)]
        figures = {**one.trouble.figures, **client, "clients": first_of(names)}
        return replace(one, trouble=replace(one.trouble, figures=figures))
    if not rows:
        return one
    if owner:
        twin = {"owner_name": f"{names[0]} (member {owner}, {rows[0].address})"} if rows[0].has_twins else {}
        return replace(one, trouble=replace(one.trouble, figures={**one.trouble.figures, "clients": names, **twin}))
    figures = {**one.trouble.figures, "clients": names, "heard_us": min(row.seen_us for row in rows)}
    return replace(one, trouble=replace(one.trouble, figures=figures))


def _with_committers(found: Sequence[_Found], tables: Tables) -> list[_Found]:
    """With the clients that committed last, where a group fetches on and commits nothing: it is one of theirs."""
    ids = [one for each in found if "fetched_beyond" in each.trouble.figures for one in each.trouble.evidence]
    if not ids:
        return list(found)
    query = "SELECT exchange_id, client_id, client_ip FROM exchanges WHERE exchange_id IN (SELECT unnest($ids))"
    names = {row.exchange_id: who(row.client_id, row.client_ip) for row in tables.rows(query, ids=ids)}
    return [_committed_by(one, names) if "fetched_beyond" in one.trouble.figures else one for one in found]


def _committed_by(one: _Found, names: Mapping[str, str]) -> _Found:
    committers = sorted({names[exchange] for exchange in one.trouble.evidence if exchange in names})
    figures = {**one.trouble.figures, "committers": committers} if committers else one.trouble.figures
    return replace(one, trouble=replace(one.trouble, figures=figures))


def _coordinators_seen(sources: Sources, open_ones: Sequence[_Found]) -> dict[str, int]:
    """By the exchange of a group's last commit, when its coordinator was last seen, µs."""
    ids = [one.trouble.evidence[-1] for one in open_ones if one.trouble.evidence]
    if not ids:
        return {}
    rows = sources.tables.rows(
        f"SELECT exchange_id, {ADDRESS['server']} AS server FROM exchanges WHERE exchange_id IN (SELECT unnest($ids))",
        ids=ids,
    )
    return {row.exchange_id: sources.server_ends[row.server] for row in rows if row.server in sources.server_ends}


def _judged(one: _Found, seen: Mapping[str, int], sources: Sources) -> Finding:
    """A finding with its state: where the coordinator was not seen to the end, what the group does is unknown."""
    trouble = one.trouble
    if not trouble.is_open:
        return _finding(one, "resolved")
    seen_us = seen.get(trouble.evidence[-1]) if trouble.evidence else None
    # A silence began before it was seen last, or else it may be that of the coordinator.
    is_silence = trouble.rule == track.STOPPED
    until_us = trouble.enough_us if is_silence else sources.ends.get(one.cluster, 0) - sources.resolved_after_us
    if seen_us is None or seen_us >= until_us:
        return _finding(one, "ongoing")
    found = _finding(one, "unknown")
    doubt = (
        f" It is unknown since {clock(seen_us)} UTC, when its coordinator last sent something: that broker has ended, "
        "or the capture of it, and commits to another one were not seen."
    )
    severity = "info" if is_silence else found.severity
    details = {**found.details, "known_until_us": seen_us}
    return replace(found, severity=severity, summary=found.summary + doubt, details=details)


def burrow_partition(points: Sequence[Point], since_us: int | None = None) -> burrow.Partition:
    """What Burrow would know of a partition from these points; by default it begins with the first of them."""
    commits = [(p.ts_us, p.committed) for p in points if p.committed is not None]
    ends = [(p.ts_us, p.end) for p in points if p.end is not None]
    return burrow.Partition(commits, ends, points[0].ts_us if since_us is None else since_us)


def burrow_state(points: Sequence[Point], until_us: int) -> burrow.BurrowState:
    """Burrow's state of a partition at a time, as it would be from commits and log ends until then."""
    return burrow_partition(points).state(until_us)


def _burrow_partitions(partitions: Mapping[int, list[Point]]) -> dict[int, burrow.Partition]:
    """What Burrow would know of a group's partitions, if it began with the first point of any."""
    since_us = min(points[0].ts_us for points in partitions.values() if points)
    return {number: burrow_partition(points, since_us) for number, points in partitions.items() if points}


def _beside_burrow(partitions: Mapping[int, burrow.Partition], trouble: Trouble) -> dict[str, Any]:
    """What Burrow would report at the end of a trouble, and when it would have reported anything of it first."""
    known = [*partitions.values()] if trouble.partition is None else [partitions[trouble.partition]]
    at_us = trouble.last_us if trouble.is_open else trouble.last_us - 1  # before what healed it
    states = [one.state(at_us) for one in known]
    state = burrow.evaluate_group(states) if trouble.partition is None else states[0]
    return {
        "burrow_state": state.name,
        "burrow_us": burrow.first_alarm_us(known, trouble.first_us, trouble.last_us),
    }


def _finding(row: _Found, state: State) -> Finding:
    trouble, partition = row.trouble, row.trouble.partition
    place = row.topic if partition is None else f"{row.topic}-{partition}"
    return Finding(
        rule=trouble.rule, severity=trouble.severity or rule_named(trouble.rule).severities[0],
        subject=f"{row.group_id}/{place}", state=state, cluster=row.cluster, topic=row.topic, partition=partition,
        group_id=row.group_id, first_us=trouble.first_us, last_us=trouble.last_us,
        summary=texts.summary(row.group_id, row.topic, trouble), advice=texts.advice(row.group_id, row.topic, trouble),
        evidence=list(trouble.evidence),
        details={**trouble.figures, "enough_us": trouble.enough_us, **row.burrow},
    )  # fmt: skip
