"""Rules about clients, brokers and topics that take more than counting symptoms."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from shlex import quote

from pipeline.analysis.rules.budget import budget_of
from pipeline.analysis.rules.coming_again import earlier
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, refusal_severity, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.clients.fetch_session_churn import SESSIONS, FetchSessionChurn
from pipeline.analysis.rules.kafka.clients.topic_recreated import RECREATED, TopicRecreated
from pipeline.analysis.rules.kafka.clients.traffic import Traffic, fetches_during
from pipeline.analysis.rules.kafka.clients.unsupported_version import NEW_PROTOCOL, VERSIONS, UnsupportedVersion
from pipeline.analysis.rules.kafka.symptoms import (
    CLOSED,
    NO_SESSION,
    OPENED,
    TOPIC_CHANGED,
)
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, pluralize, seconds

Episodes = Mapping[str, Sequence[Episode]]
_GROUPS_KEPT = 50
_LAST_COMMITS = """
    WITH asked AS (SELECT unnest($clusters) AS cluster, unnest($topics) AS topic)
    SELECT cluster, topic, group_id, max(epoch_us(ts)) AS us FROM events SEMI JOIN asked USING (cluster, topic)
    WHERE kind = 'committed' AND group_id IS NOT NULL GROUP BY ALL
"""


class RequestThresholds(FetchSessionChurn.Thresholds, UnsupportedVersion.Thresholds):
    """Thresholds of rules that share a pass."""


@finds(FetchSessionChurn, UnsupportedVersion, TopicRecreated)
def find(sources: Sources, settings: RequestThresholds) -> list[Finding]:
    """Apply the rules."""
    episodes, traffic = sources.episodes, sources.traffic
    return [
        *_fetch_session_churn(episodes, sources, settings),
        *_unsupported_version(episodes, traffic, sources, settings),
        *_topic_recreated(sources, settings),
    ]


def _fetch_session_churn(episodes: Episodes, sources: Sources, settings: RequestThresholds) -> Iterator[Finding]:
    """A client whose fetches mostly open a session, or ask for one in vain, instead of going on with one."""
    seen = episodes.get("fetch_session_churn", [])
    givers = {one.server for e in seen for one in e.each if one.what == OPENED}
    many = [e for e in seen if e.times >= settings.churn_sessions]
    fetches = fetches_during(sources.tables, many)
    for episode in last_of_each(e for e in many if e.times >= settings.churn_share * fetches[e]):
        times = fetches[episode]
        span_us = int(settings.costly_sessions_seconds * 1_000_000)
        busiest = _busiest([one.us for one in episode.each], span_us)
        in_vain = 2 * sum(one.what == NO_SESSION for one in episode.each) > len(episode.each)
        did = "asked for a fetch session in vain" if in_vain else "began a new fetch session"
        why = ", for the broker's cache of sessions is full, or it keeps none" if in_vain else ""
        summary = (
            f"{clients(episode)} {did} {when(episode)}, in {pluralize(times, 'fetch', 'fetches')}, up to {busiest} "
            "within "
            f"{seconds(span_us)}{why}: each time all partitions are sent in full ({names(episode)})."
        )
        keeps_none = in_vain and givers.isdisjoint(episode.servers)  # as far as it was seen
        severity = "warning" if busiest >= settings.costly_sessions and not keeps_none else "info"
        made = finding(episode, severity, summary, SESSIONS, sources, settings.churn_sessions)
        yield replace(made, details={**made.details, "busiest": busiest, "in_vain": in_vain})


def _busiest(times_us: Sequence[int], span_us: int) -> int:
    """The most of ascending times that lie within a span, µs."""
    return max((end + 1 - bisect_left(times_us, us - span_us) for end, us in enumerate(times_us)), default=0)


def _unsupported_version(
    episodes: Episodes, traffic: Sequence[Traffic], sources: Sources, settings: RequestThresholds
) -> Iterator[Finding]:
    """Requests that a broker refuses, or closes the connection on, because of their version."""
    answered: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for t in traffic:
        asked = t.cluster, t.server, f"{t.api_name or f'api {t.api_key}'} v{t.api_version}"
        answered[asked] = max(answered[asked], t.answered_us or 0)

    def is_refused(episode: Episode) -> bool:
        # A connection that ended for another reason leaves requests unanswered as well, but others get their answers.
        version = episode.subject.rpartition("/")[2]
        taken_us = max(answered[episode.cluster, server, version] for server in episode.servers)
        until_us = taken_us + int(settings.resolved_after_seconds * 1_000_000)
        is_taken = episode.names == (CLOSED,) and episode.last_us <= until_us
        return episode.times >= settings.unsupported_version_times and not is_taken

    for episode in last_of_each(filter(is_refused, episodes.get("unsupported_version", []))):
        version = episode.subject.rpartition("/")[2]
        healed_us = episode.healed_us
        since = "" if healed_us is None else f"; since {clock(healed_us)} UTC it uses another one"
        summary = f"{episode.server} did not take the requests {version} of {clients(episode)} {when(episode)}{since}."
        severity = refusal_severity(episode, settings)
        advice = NEW_PROTOCOL if version.startswith("ConsumerGroupHeartbeat ") else VERSIONS
        yield finding(episode, severity, summary, advice, sources, settings.unsupported_version_times)


def _topic_recreated(sources: Sources, settings: RequestThresholds) -> Iterator[Finding]:
    """One name, two topic ids, one after the other."""
    lives = sources.facts.recreated
    topics = budget_of(sources).worst("topic_recreated", sorted(lives), lambda topic: (lives[topic][-1][0], topic))
    changed = sources.by_subject(TOPIC_CHANGED)
    committed = _last_commits(sources.tables, topics) if topics else {}
    for cluster, name in topics:
        ids = lives[cluster, name]
        (_, last_old_us, old_id), (first_us, _, new_id) = ids[-2:]
        times = [(min(old_last_us, us), us) for (_, old_last_us, _), (us, _, _) in pairwise(ids)]
        changes = changed.get((cluster, name), ())
        by = sorted({client for e in changes for client in e.clients})
        since = sorted(group for group, us in committed.get((cluster, name), ()) if us > first_us)
        summary = (
            f"Topic {name} is another one since {clock(first_us)} UTC: it was deleted and created again "
            f"(id {old_id} was last seen at {clock(last_old_us)} UTC, now it is {new_id})"
            f"{', by ' + ', '.join(by) if by else ''}. Its offsets begin anew."
        )
        yield Finding(
            rule="topic_recreated", severity="warning", subject=name,
            state=sources.state(cluster, first_us, first_us, 1), cluster=cluster, topic=name, partition=None,
            group_id=None, first_us=min(last_old_us, first_us), last_us=first_us, summary=summary,
            advice=RECREATED.format(topic=quote(name)),
            evidence=[one for e in changes for one in e.evidence][: settings.max_evidence],
            details={
                "old_id": old_id, "new_id": new_id, "lives": len(ids), "enough_us": first_us,
                "committed_since": since[:_GROUPS_KEPT], **earlier(times),
            },
        )  # fmt: skip


def _last_commits(tables: Tables, topics: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Of topics (cluster, name) the groups that have committed them, each with the time of its last commit, µs."""
    clusters, called = zip(*topics, strict=True)
    found = defaultdict(list)
    for row in tables.rows(_LAST_COMMITS, clusters=clusters, topics=called):
        found[row.cluster, row.topic].append((row.group_id, row.us))
    return found
