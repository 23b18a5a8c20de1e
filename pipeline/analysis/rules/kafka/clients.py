"""Rules about clients, brokers and topics that take more than counting symptoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median

from decoder.kafka.schema.releases import first_version, is_removed
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, when
from pipeline.analysis.rules.episodes import Episode
from pipeline.analysis.rules.kafka.symptoms import (
    API_VERSIONS,
    CLOSED,
    JOINED_AT,
    TOPIC_CHANGED,
)
from pipeline.analysis.rules.kafka.traffic import Traffic, fetches_during
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.settings import FindingSettings

Episodes = Mapping[str, Sequence[Episode]]


RULES = (
    Rule(
        "rebalance_storm",
        "kafka",
        ("warning",),
        "A group rebalances again and again.",
        ("storm_generations", "storm_interval_seconds"),
    ),
    Rule(
        "fetch_session_churn",
        "kafka",
        ("warning",),
        "A client opens a new fetch session for most of its fetches.",
        ("churn_sessions", "churn_share"),
    ),
    Rule(
        "latency_outlier",
        "kafka",
        ("warning",),
        "A broker took far longer than usual to answer requests that do not wait by design.",
        ("slow_seconds", "slow_answers", "slow_ratio"),
    ),
    Rule(
        "unsupported_version",
        "kafka",
        ("critical",),
        "A broker did not take a request because of its version.",
        ("unsupported_version_times", "still_open_seconds"),
    ),
    Rule(
        "kip896_incompatible_client",
        "kafka",
        ("warning",),
        "A client uses protocol versions that Kafka 4 has removed.",
        (),
    ),
    Rule(
        "topic_recreated",
        "kafka",
        ("warning",),
        "A topic of the same name has another topic id: its offsets begin anew.",
        (),
    ),
)


@finds(*RULES)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rules."""
    episodes, traffic = sources.episodes, sources.traffic
    return [
        *_rebalance_storm(episodes, sources, settings),
        *_fetch_session_churn(episodes, sources, settings),
        *_latency_outlier(episodes, traffic, sources, settings),
        *_unsupported_version(episodes, traffic, sources, settings),
        *_incompatible(traffic, sources.newest, sources, settings),
        *_topic_recreated(episodes, sources, settings),
    ]


def _rebalance_storm(episodes: Episodes, sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Many generations of a group in a short time."""
    advice = (
        "Look for a member that comes and goes: one that crashes and restarts, is slower than max.poll.interval.ms, or "
        "loses its session (session.timeout.ms, long pauses). Static membership (group.instance.id), cooperative "
        "assignment or group.protocol=consumer (KIP-848) make what remains cheaper."
    )
    for episode in last_of_each(e for e in episodes.get("rebalance_storm", []) if _is_storm(e, settings)):
        by_epochs = _is_by_epochs(episode)
        summary = (
            f"Group {episode.subject} went through {episode.kinds} {'epochs' if by_epochs else 'generations'} in "
            f"{seconds(episode.span_us)}, from {clock(episode.first_us)} to {clock(episode.last_us)} UTC"
            f"{'' if by_epochs else '; meanwhile it does not read'}. {clients(episode)} joined {episode.times} times."
        )
        yield finding(episode, "warning", summary, advice, sources, settings.storm_generations)


def _is_storm(episode: Episode, settings: FindingSettings) -> bool:
    # Each member begins an epoch of a KIP-848 group when it starts: what it begins after that counts.
    generations = episode.times - episode.callers + 1 if _is_by_epochs(episode) else episode.kinds
    longest_us = generations * settings.storm_interval_seconds * 1_000_000
    return generations >= settings.storm_generations and episode.span_us <= longest_us


def _is_by_epochs(episode: Episode) -> bool:
    return all(name.startswith(JOINED_AT) for name in episode.names)


def _fetch_session_churn(episodes: Episodes, sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """A client whose fetches mostly open a session, instead of going on with the one that it has."""
    advice = (
        "The broker keeps max.incremental.fetch.session.cache.slots sessions (1000) and drops the oldest: with more "
        "consumers and followers than that, raise it. If only this client does it, look for one that is made anew for "
        "each read, or a library with a fault."
    )
    many = [e for e in episodes.get("fetch_session_churn", []) if e.times >= settings.churn_sessions]
    fetches = fetches_during(sources.tables, many)
    for episode in last_of_each(e for e in many if e.times >= settings.churn_share * fetches[e]):
        summary = (
            f"{clients(episode)} began a new fetch session {when(episode)}, in {fetches[episode]} fetches: each "
            f"time all partitions are sent in full ({names(episode)})."
        )
        yield finding(episode, "warning", summary, advice, sources, settings.churn_sessions)


def _latency_outlier(
    episodes: Episodes, traffic: Sequence[Traffic], sources: Sources, settings: FindingSettings
) -> Iterator[Finding]:
    """Answers that took far longer than that broker takes for the same apis."""
    advice = (
        "Look at the broker at that time: garbage collection, a full or slow disk, an election, replicas that lag "
        "(acks=all waits for them). `silver.exchanges` by latency_us shows which clients and requests it hit."
    )

    def typical_us(episode: Episode) -> float:
        usual = [
            t.p95_us
            for t in traffic
            if t.server == episode.server and t.api_name in episode.names and t.p95_us is not None
        ]
        return median(usual) if usual else 0

    def is_outlier(episode: Episode) -> bool:
        return episode.times >= settings.slow_answers and episode.peak >= settings.slow_ratio * typical_us(episode)

    for episode in last_of_each(filter(is_outlier, episodes.get("latency_outlier", []))):
        summary = (
            f"{episode.server} took up to {episode.peak / 1_000_000:.1f} s to answer {names(episode)}, usually below "
            f"{max(typical_us(episode), 1000) / 1000:.0f} ms: {episode.times} answers from "
            f"{clock(episode.first_us)} to {clock(episode.last_us)} UTC, to {clients(episode)}."
        )
        yield finding(episode, "warning", summary, advice, sources, settings.slow_answers)


def _unsupported_version(
    episodes: Episodes, traffic: Sequence[Traffic], sources: Sources, settings: FindingSettings
) -> Iterator[Finding]:
    """Requests that a broker refuses, or closes the connection on, because of their version."""
    advice = (
        "Update the client library: it uses a request that this broker does not know (Kafka 4 dropped what KIP-896 "
        "lists), or it is newer than the broker and does not ask which versions there are."
    )
    answered: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for t in traffic:
        asked = t.cluster, t.server, f"{t.api_name} v{t.api_version}"
        answered[asked] = max(answered[asked], t.answered_us or 0)

    def is_refused(episode: Episode) -> bool:
        # A connection that ended for another reason leaves requests unanswered as well, but others get their answers.
        version = episode.subject.rpartition("/")[2]
        until_us = answered[episode.cluster, episode.server, version] + int(settings.still_open_seconds * 1_000_000)
        is_taken = episode.names == (CLOSED,) and episode.last_us <= until_us
        return episode.times >= settings.unsupported_version_times and not is_taken

    for episode in last_of_each(filter(is_refused, episodes.get("unsupported_version", []))):
        version = episode.subject.rpartition("/")[2]
        summary = f"{episode.server} did not take the requests {version} of {clients(episode)} {when(episode)}."
        yield finding(episode, "critical", summary, advice, sources, settings.unsupported_version_times)


def _incompatible(
    traffic: Sequence[Traffic], newest: Mapping[str, Mapping[int, int]], sources: Sources, settings: FindingSettings
) -> Iterator[Finding]:
    """Clients that use versions which Kafka 4 dropped, although the broker would take newer ones, or unasked."""
    advice = (
        "Update this client's library before the brokers go to Kafka 4: kafka-clients 2.1 or later, librdkafka 1.0 "
        "or later, other libraries of 2019 or later."
    )
    asks = {(t.server, t.client_id, t.client_ip) for t in traffic if t.api_key == API_VERSIONS}
    old: defaultdict[tuple[str, str], list[Traffic]] = defaultdict(list)
    for t in traffic:
        if not is_removed(t.api_key, t.api_version):
            continue
        has_newer = newest.get(t.cluster, {}).get(t.api_key, 0) >= first_version(t.api_key)
        if has_newer or (t.server, t.client_id, t.client_ip) not in asks:
            old[t.cluster, t.client_id or "?"].append(t)
    for (cluster, client_id), uses in sorted(old.items()):
        apis = sorted({f"{t.api_name} v{t.api_version}" for t in uses})
        first_us, last_us = min(t.first_us for t in uses), max(t.last_us for t in uses)
        times = sum(t.times for t in uses)
        hosts = sorted({t.client_ip for t in uses})
        summary = (
            f"Client {client_id} at {', '.join(hosts)} uses {', '.join(apis)}, which Kafka 4 no longer answers "
            f"(KIP-896): {times} requests from {clock(first_us)} to {clock(last_us)} UTC."
        )
        yield Finding(
            rule="kip896_incompatible_client", severity="warning", subject=client_id,
            state=sources.state(cluster, first_us, last_us, times), cluster=cluster, topic=None, partition=None,
            group_id=None, first_us=first_us, last_us=last_us, summary=summary, advice=advice,
            evidence=[t.evidence for t in uses][: settings.max_evidence],
            details={"apis": apis, "hosts": hosts, "requests": times, "enough_us": first_us},
        )  # fmt: skip


def _topic_recreated(episodes: Episodes, sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """One name, two topic ids, one after the other."""
    advice = (
        "Offsets that groups have committed belong to the topic that is gone: check their positions, reset them to the "
        "beginning if in doubt. Clients that know the old id get UNKNOWN_TOPIC_ID until they refresh their metadata."
    )
    known = sorted(
        (cluster, seen.value, seen.first_us, seen.last_us, topic_id)
        for (cluster, topic_id), seen in sources.facts.topics.items()
    )
    for (cluster, name), lives in groupby(known, key=lambda life: (life[0], life[1])):
        ids = list(lives)
        if len(ids) < 2:
            continue
        (*_, last_old_us, old_id), (*_, first_us, _, new_id) = ids[-2:]
        changes = [e for e in episodes.get(TOPIC_CHANGED, []) if e.cluster == cluster and e.subject == name]
        by = sorted({client for e in changes for client in e.clients})
        summary = (
            f"Topic {name} is another one since {clock(first_us)} UTC: it was deleted and created again "
            f"(id {old_id} was last seen at {clock(last_old_us)}, now it is {new_id})"
            f"{', by ' + ', '.join(by) if by else ''}. Its offsets begin anew."
        )
        yield Finding(
            rule="topic_recreated", severity="warning", subject=name,
            state=sources.state(cluster, first_us, first_us, 1), cluster=cluster, topic=name, partition=None,
            group_id=None, first_us=min(last_old_us, first_us), last_us=first_us, summary=summary, advice=advice,
            evidence=[one for e in changes for one in e.evidence][: settings.max_evidence],
            details={"old_id": old_id, "new_id": new_id, "lives": len(ids), "enough_us": first_us},
        )  # fmt: skip
