"""Rule ``stale_metadata``: clients ask brokers that do not lead; and what an election or a restart has to do with it.

When a leader changes, requests are under way, and clients learn of it by their error. Of a broker that restarts each
client and partition learns in the same way: that is one effect of one restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipeline.analysis.claims.kafka.brokers import STALE_METADATA
from pipeline.analysis.rules.case.case import arg
from pipeline.analysis.rules.case.entities import CLIENT, TOPIC
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, own_clients, topic_names
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.thresholds import (
    RETRY_WITHOUT_SUCCESS_SECONDS,
    STALE_METADATA_SECONDS,
    STALE_METADATA_TIMES,
)
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import clock, pluralize

ADVICE = (
    "Now: look whether this broker gets metadata updates (it may be cut off from the controller); restart the client "
    "if others get on. Fix: clients refresh their metadata after such an error; one that does not has a fault: update "
    "its library. metadata.max.age.ms (librdkafka: topic.metadata.refresh.interval.ms) bounds how old metadata gets."
)


class StaleMetadata(Rule):
    """A client asks a broker that is not the leader that the client takes it for."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        stale_metadata_times: Count = STALE_METADATA_TIMES
        stale_metadata_seconds: Seconds = STALE_METADATA_SECONDS
        retry_without_success_seconds: Seconds = RETRY_WITHOUT_SUCCESS_SECONDS

    name = "stale_metadata"
    title = "Stale metadata"
    protocol = "kafka"
    about = "metadata"
    severities = ("warning", "info")
    reads = ("exchanges", "events")
    advice = (ADVICE,)
    urgency = REFUSED
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=lambda case: (
            f"{case.who} and broker {case.server} do not agree on the leader of {case.places} ({case.kinds})"
        ),
        now=lambda case: (
            "Ask who leads: `kafka-topics.sh --bootstrap-server BROKER --describe --topic "
            f"{arg('|'.join(topic_names(case)))}`. If the broker is right, restart {case.clients}; if not, "
            f"restart broker {case.server}: it gets no metadata."
        ),
        fix="metadata.max.age.ms (Java), topic.metadata.refresh.interval.ms (librdkafka); watch the controller's "
        "connection to each broker.",
        reasoning=f"{SEEN}these are the broker's own answers.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    counting = Counting(is_refused=True)
    effects = (Link(("fenced_leader_epoch",), (CLIENT, TOPIC), "it is the same leader"),)
    claims = STALE_METADATA

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule."""
        many = [
            e
            for e in sources.episodes.get(cls.name, ())
            if e.run >= settings.stale_metadata_times and e.run_us >= settings.stale_metadata_seconds * 1_000_000
        ]
        in_vain_us = settings.retry_without_success_seconds * 1_000_000
        passing: list[Episode] = []
        for one in last_of_each(many):
            if one.run_us < in_vain_us:
                passing.append(one)
                continue
            severity = "warning" if one.healed_us is None else "info"
            yield finding(one, severity, _summary(one), ADVICE, sources, settings.stale_metadata_times)
        for wave in waves(passing):
            if len({(one.topic, one.partition) for one in wave}) < _WAVE_PARTITIONS:
                for one in wave:
                    yield finding(one, "info", _summary(one), ADVICE, sources, settings.stale_metadata_times)
            else:
                yield _of_wave(wave, sources, settings)


_WAVE_US = 10_000_000
_WAVE_PARTITIONS = 3
_PARTITIONS_NAMED = 50


def waves(episodes: Iterable[Episode]) -> Iterator[list[Episode]]:
    """Those at one broker that begin within ten seconds of each other, in order of time."""
    by_server: defaultdict[tuple[str, str], list[Episode]] = defaultdict(list)
    for one in sorted(episodes, key=lambda e: (e.first_us, e.subject)):
        by_server[one.cluster, one.server].append(one)
    for some in by_server.values():
        wave: list[Episode] = []
        for one in some:
            if wave and one.first_us - wave[-1].first_us > _WAVE_US:
                yield wave
                wave = []
            wave.append(one)
        yield wave


def _of_wave(wave: list[Episode], sources: Sources, settings: StaleMetadata.Thresholds) -> Finding:
    whole = wave[0]
    for one in wave[1:]:
        whole = whole.with_another(one)
    healed = [one.healed_us for one in wave]
    whole = replace(
        whole, subject=whole.server, topic=None, partition=None, last_us=max(one.last_us for one in wave),
        healed_us=None if None in healed else max(us for us in healed if us is not None),
    )  # fmt: skip
    places = sorted({place(one) for one in wave})
    summary = (
        f"{clients(whole)} and broker {whole.server} did not agree on the leaders of "
        f"{pluralize(len(places), 'partition')} "
        f"({names(whole)}) from {clock(whole.first_us)} to {clock(whole.last_us)} UTC: leaders changed at once, as "
        "when a broker restarts."
    )
    made = finding(whole, "info", summary, ADVICE, sources, settings.stale_metadata_times)
    return replace(made, details={**made.details, "partitions": places[:_PARTITIONS_NAMED]})


def _summary(one: Episode) -> str:
    since = "" if one.healed_us is None else f"; since {clock(one.healed_us)} UTC they do"
    return (
        f"{clients(one)} and broker {one.server} do not agree on the leader of {place(one)}: {names(one)} "
        f"{when(one)}{since}."
    )
