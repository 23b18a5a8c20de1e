"""Rule ``stale_metadata``: clients ask brokers that do not lead; and what an election or a restart has to do with it.

When a leader changes, requests are under way, and clients learn of it by their error. Of a broker that restarts each
client and partition learns in the same way: that is one effect of one restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.brokers.stale_metadata import ADVICE, StaleMetadata
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds
from pipeline.humanize import clock, pluralize

_WAVE_US = 10_000_000
_WAVE_PARTITIONS = 3
_PARTITIONS_NAMED = 50


@finds(StaleMetadata)
def find(sources: Sources, settings: StaleMetadata.Thresholds) -> Iterator[Finding]:
    """Apply the rule."""
    many = [
        e
        for e in sources.episodes.get(StaleMetadata.name, ())
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
