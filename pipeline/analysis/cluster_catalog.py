"""Clusters of servers and names of topic ids, as the wire states them, merged over time.

Both are small, so they are merged in plain Python. Merging takes minima and maxima only: the result does not depend on
how the stream was cut into batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement, or several of the same content: between ``first_us`` and ``last_us`` (µs since the epoch).

    Attributes:
        server: ip:port that stated it.
        cluster: cluster id, if the statement names it.
        topic_id, topic: if the statement is about a topic.
    """

    server: str
    cluster: str | None
    topic_id: str | None
    topic: str | None
    first_us: int
    last_us: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A value and when it was seen first and last, µs since the epoch.

    Attributes:
        is_inferred: whether no message states it (:mod:`pipeline.analysis.inferred`).
    """

    value: str
    first_us: int
    last_us: int
    is_inferred: bool = False

    def merged(self, other: Seen) -> Seen:
        """Both together; the value that was seen first stays, but what is stated replaces what was inferred."""
        is_first = (self.is_inferred, self.first_us, self.value) <= (other.is_inferred, other.first_us, other.value)
        value, is_inferred = (self.value, self.is_inferred) if is_first else (other.value, other.is_inferred)
        return Seen(value, min(self.first_us, other.first_us), max(self.last_us, other.last_us), is_inferred)


@dataclass(frozen=True)
class ClusterCatalog:
    """Clusters by server, names by topic id.

    Attributes:
        brokers: (server, cluster) → when.
        topics: (cluster, topic id) → name and when.
    """

    brokers: Mapping[tuple[str, str], Seen] = field(default_factory=dict)
    topics: Mapping[tuple[str, str], Seen] = field(default_factory=dict)

    def cluster_at(self, server: str, ts_us: int) -> str:
        """The cluster of ``server`` at a time; the server itself while it is not known."""
        return self.clusters_at([(server, ts_us)])[0]

    def clusters_at(self, places: Iterable[tuple[str, int]]) -> list[str]:
        """The same of many servers and times (µs since the epoch)."""
        spans, begins = self._spans, self._begins
        found = []
        for server, ts_us in places:
            place = bisect_right(begins.get(server, ()), ts_us) - 1
            is_in = place >= 0 and ts_us < spans[server][place][1]
            found.append(spans[server][place][2] if is_in else server)
        return found

    @cached_property
    def _spans(self) -> dict[str, list[tuple[int, int, str]]]:
        """Per server: from, until (exclusive), cluster. An address may pass from one cluster to another, and back."""
        seen_at: dict[str, list[Seen]] = defaultdict(list)
        for (server, _), seen in self.brokers.items():
            seen_at[server].append(seen)
        return {server: _spans_of(sightings) for server, sightings in seen_at.items()}

    @cached_property
    def _begins(self) -> dict[str, list[int]]:
        """When the spans of each server begin: they follow each other without gaps."""
        return {server: [begin_us for begin_us, _, _ in spans] for server, spans in self._spans.items()}

    def spans_of(self, server: str) -> Sequence[tuple[int, int, str]]:
        """From and until (µs, exclusive) of a server, and its cluster then; none while it is not known."""
        return self._spans.get(server, ())

    def spans(self, servers: Iterable[str] | None = None) -> list[tuple[str, int, int, str]]:
        """Of ``servers`` (None: of all) server, from and until (µs, exclusive), and its cluster then."""
        wanted = None if servers is None else set(servers)
        return [
            (server, *span)
            for server, spans in sorted(self._spans.items())
            if wanted is None or server in wanted
            for span in spans
        ]

    @cached_property
    def names(self) -> dict[str, str]:
        """Names by topic id."""
        return {topic_id: seen.value for (_, topic_id), seen in sorted(self.topics.items(), key=itemgetter(0))}

    @cached_property
    def lives(self) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
        """Of each topic (cluster, name) the ids, in order of time: seen first and last (µs since the epoch), id.

        A topic that is deleted and recreated has the same name and another id.
        """
        found: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
        for (cluster, topic_id), seen in self.topics.items():
            found.setdefault((cluster, seen.value), []).append((seen.first_us, seen.last_us, topic_id))
        for ids in found.values():
            ids.sort()
        return found

    @cached_property
    def recreated(self) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
        """The topics that had several ids, as :attr:`lives` has them."""
        return {topic: ids for topic, ids in self.lives.items() if len(ids) > 1}

    @cached_property
    def renewed_topics(self) -> list[tuple[str, str, str, int, int, int]]:
        """Cluster, name, id, number, from and until (µs, exclusive) of each topic that had several ids, without gaps.

        The number counts the ids of a name from 0. The first has no beginning, the last no end.
        """
        return [
            (
                cluster, name, topic_id, number,
                first_us if number else _LONG_AGO,
                ids[number + 1][0] if number + 1 < len(ids) else FAR_AWAY_US,
            )
            for (cluster, name), ids in sorted(self.recreated.items())
            for number, (first_us, _, topic_id) in enumerate(ids)
        ]  # fmt: skip

    def merged(self, facts: Iterable[Fact]) -> ClusterCatalog:
        """This catalog with what new statements add."""
        news = list(facts)
        brokers = dict(self.brokers)
        for (server, cluster), (first_us, last_us) in _spoken_for(news).items():
            _put(brokers, (server, cluster), Seen(cluster, first_us, last_us))
        brokers = _settled(brokers)
        sightings = dict(self.topics)
        for fact in news:
            if fact.topic_id is not None and fact.topic is not None:
                place = fact.cluster or fact.server, fact.topic_id
                _put(sightings, place, Seen(fact.topic, fact.first_us, fact.last_us))
        return ClusterCatalog(brokers, _without_doubtful(_at_home(sightings)))

    def with_inferred_clusters(self, clusters: Mapping[tuple[str, str], Seen]) -> ClusterCatalog:
        """This catalog, and (server, cluster) of servers whose cluster no message states."""
        brokers = dict(self.brokers)
        for key, seen in clusters.items():
            _put(brokers, key, seen)
        brokers = _settled(brokers)
        home = {server: cluster for (server, cluster), seen in brokers.items() if seen.is_inferred}
        topics: dict[tuple[str, str], Seen] = {}
        for (cluster, topic_id), seen in self.topics.items():
            _put(topics, (home.get(cluster, cluster), topic_id), seen)
        return ClusterCatalog(brokers, topics)

    def with_inferred(self, names: Mapping[tuple[str, str], Seen]) -> ClusterCatalog:
        """These facts, and names of (cluster, topic id) that no message states."""
        topics = dict(self.topics)
        for key, seen in names.items():
            _put(topics, key, seen)
        return ClusterCatalog(self.brokers, topics)

    def newest(self, most: int) -> ClusterCatalog:
        """At most this many of each kind: those that were seen last."""
        if max(len(self.brokers), len(self.topics)) <= most:
            return self
        return ClusterCatalog(_newest(self.brokers, most), _newest(self.topics, most))

    def servers_changed(self, before: ClusterCatalog) -> list[str]:
        """Servers whose cluster is another, at some time, than in ``before``."""
        old, new = before._spans, self._spans
        return sorted(server for server, spans in new.items() if old.get(server) != spans)

    def names_learned(self, before: ClusterCatalog) -> dict[str, str]:
        """Names of topic ids that ``before`` did not know or named otherwise."""
        old = before.names
        return {topic_id: name for topic_id, name in self.names.items() if old.get(topic_id) != name}


def _spoken_for(facts: Iterable[Fact]) -> dict[tuple[str, str], tuple[int, int]]:
    """By server and cluster when it was stated first and last (µs since the epoch) that they belong together."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for fact in facts:
        if fact.cluster is not None:
            key = fact.server, fact.cluster
            first_us, last_us = found.get(key, (fact.first_us, fact.last_us))
            found[key] = min(first_us, fact.first_us), max(last_us, fact.last_us)
    return found


def _at_home(sightings: dict[tuple[str, str], Seen]) -> dict[tuple[str, str], Seen]:
    """Topics by (cluster, topic id), where a server may have stood for its cluster.

    CreateTopics names no cluster: ids are unique, so whoever names the cluster of one settles it.
    """
    if not any(is_address(cluster) for cluster in {cluster for cluster, _ in sightings}):
        return sightings
    known = sorted((cluster, topic_id) for cluster, topic_id in sightings if not is_address(cluster))
    home = {topic_id: cluster for cluster, topic_id in known}
    topics: dict[tuple[str, str], Seen] = {}
    for (cluster, topic_id), seen in sightings.items():
        _put(topics, (home.get(topic_id, cluster) if is_address(cluster) else cluster, topic_id), seen)
    return topics


def _settled(brokers: Mapping[tuple[str, str], Seen]) -> dict[tuple[str, str], Seen]:
    """Without inferred clusters where one is stated; where an address stood for a cluster, with the cluster's id."""
    newest: dict[str, Seen] = {}
    for (server, _), seen in sorted(brokers.items()):
        if not seen.is_inferred and (server not in newest or seen.last_us > newest[server].last_us):
            newest[server] = seen
    found: dict[tuple[str, str], Seen] = {}
    for (server, cluster), seen in brokers.items():
        if not seen.is_inferred:
            _put(found, (server, cluster), seen)
        elif server not in newest:
            name = newest[cluster].value if cluster in newest else cluster
            _put(found, (server, name), replace(seen, value=name))
    return found


def _without_doubtful(topics: dict[tuple[str, str], Seen]) -> dict[tuple[str, str], Seen]:
    """Without inferred names that are stated to be those of other ids: these would be recreated topics."""
    stated = {(cluster, seen.value) for (cluster, _), seen in topics.items() if not seen.is_inferred}
    return {
        (cluster, topic_id): seen
        for (cluster, topic_id), seen in topics.items()
        if not seen.is_inferred or (cluster, seen.value) not in stated
    }


def _newest(seen: Mapping[tuple[str, str], Seen], most: int) -> dict[tuple[str, str], Seen]:
    last = sorted(seen, key=lambda key: (seen[key].last_us, key))[-most:]
    return {key: seen[key] for key in last}


_LONG_AGO = 0
FAR_AWAY_US = 253_370_764_800_000_000
"""The year 9999, in µs since the epoch."""


def _spans_of(sightings: list[Seen]) -> list[tuple[int, int, str]]:
    """Cut time at each first and last sighting, and find which cluster has the address in between.

    The cluster seen before and after; else the one seen last before; else the very first. Of several seen before and
    after, the one that came last: it has taken the address over for a while.
    """
    first_of_all = min(sightings, key=lambda s: (s.first_us, s.value)).value
    coming = sorted(sightings, key=lambda s: (s.first_us, s.value))
    going = sorted(sightings, key=lambda s: (s.last_us, s.value))
    cuts = sorted({_LONG_AGO, *(s.first_us for s in sightings), *(s.last_us + 1 for s in sightings), FAR_AWAY_US})
    spans: list[tuple[int, int, str]] = []
    around: list[Seen] = []  # in the order in which they came; those on top that have gone are dropped
    came = gone = 0
    for start, end in pairwise(cuts):
        while came < len(coming) and coming[came].first_us <= start:
            around.append(coming[came])
            came += 1
        while gone < len(going) and going[gone].last_us < start:
            gone += 1
        while around and around[-1].last_us < start:
            around.pop()
        before = going[gone - 1].value if gone else first_of_all
        cluster = around[-1].value if around else before
        if spans and spans[-1][2] == cluster:
            start = spans.pop()[0]  # noqa: PLW2901 - one span for both
        spans.append((start, end, cluster))
    return spans


def is_address(cluster: str) -> bool:
    """Whether a server stands for its cluster: cluster ids are base64 and have no colon."""
    return ":" in cluster


def _put(into: dict[tuple[str, str], Seen], key: tuple[str, str], seen: Seen) -> None:
    into[key] = into[key].merged(seen) if key in into else seen
