"""Symptoms that belong together: those of one subject, cut where they pause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import NAMES_KEPT, Episode, Shown
from pipeline.analysis.rules.kafka.symptoms import (
    INTRODUCED,
)
from pipeline.analysis.rules.model import NAMELESS
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.rules.thresholds import RuleThresholds


def collect_episodes(found: Iterable[Shown], catalog: ClusterCatalog, settings: RuleThresholds) -> list[Episode]:
    """All episodes, those of one subject in order of time.

    Args:
        found: symptoms, as :func:`exchange_symptoms` gives them.
        catalog: clusters as known now.
        settings: the pause that ends an episode.
    """
    shown = list(found)
    clusters = catalog.clusters_at((one.server, one.us) for one in shown)
    ordered = sorted(zip(clusters, shown, strict=True), key=_in_order)
    episodes = []
    for (cluster, rule, _, _), some in groupby(ordered, key=_of_subject):
        runs = _without_pauses((one for _, one in some), *_longest_pauses_us(rule, settings))
        episodes += [_episode(run, cluster, settings.max_evidence) for run in runs]
    return episodes


def _longest_pauses_us(rule: str, settings: RuleThresholds) -> tuple[float, float]:
    """The longest pause within an episode, µs, between any two symptoms, and between two of one connection."""
    counting = rule_named(rule).counting
    if counting.pause_setting is not None:
        own_us = 2 * getattr(settings, counting.pause_setting) * 1_000_000
        return own_us, own_us
    pause_us = settings.episode_pause_seconds * 1_000_000
    patient_us = pause_us * settings.silence_periods
    is_patient = counting.is_refused or counting.is_refused_on_connection
    return (patient_us if counting.is_refused else pause_us), (patient_us if is_patient else pause_us)


def _of_subject(placed: tuple[str, Shown]) -> tuple[str, str, str, str]:
    """A coordinator or leader that moves to another broker continues with the same: clusters count, not servers."""
    cluster, one = placed
    return cluster, one.rule, one.subject, one.client_ip if rule_named(one.rule).counting.by_host else ""


def _in_order(placed: tuple[str, Shown]) -> tuple[object, ...]:
    one = placed[1]
    partition = -1 if one.partition is None else one.partition
    return (*_of_subject(placed), one.us, one.exchange_id, one.what, partition)


def _without_pauses(some: Iterable[Shown], longest_us: float, of_one_us: float) -> Iterator[list[Shown]]:
    run: list[Shown] = []
    for one in some:
        if run and one.us - run[-1].us > (of_one_us if one.client == run[-1].client else longest_us):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _episode(run: list[Shown], cluster: str, max_evidence: int) -> Episode:
    first, last = run[0], run[-1]
    shown: dict[str, tuple[Any, ...]] = dict(zip(Shown._fields, zip(*run, strict=True), strict=True))
    names = sorted(set(shown["what"]))
    who = set(zip(shown["client_id"], shown["client_ip"], strict=True))
    clients = sorted({f"{NAMELESS if client_id is None else client_id} at {host}" for client_id, host in who})
    between: defaultdict[tuple[str, int | None], list[int]] = defaultdict(list)
    for host, healed_us, us in zip(shown["client_ip"], shown["healed_us"], shown["us"], strict=True):
        between[host, healed_us].append(us)
    values = [float(value) for value in shown["value"]]
    return Episode(
        rule=first.rule, cluster=cluster, server=last.server, subject=first.subject,
        times=len(run), first_us=first.us, last_us=last.us, total=sum(values), peak=max(values),
        kinds=len(names), names=tuple(name for name in names[:NAMES_KEPT] if name),
        callers=len(clients), clients=tuple(clients[:NAMES_KEPT]),
        topic=_greatest(shown["topic"]), partition=_greatest(shown["partition"]), group_id=_greatest(shown["group_id"]),
        evidence=shown["exchange_id"][:max_evidence], times_us=shown["us"][:max_evidence],
        servers=tuple(sorted(set(shown["server"]))[:NAMES_KEPT]),
        unhealed=shown["healed_us"].count(None), run=max(map(len, between.values())),
        run_us=max(some[-1] - some[0] for some in between.values()), healed_us=last.healed_us,
        each=tuple(run) if first.rule == INTRODUCED or rule_named(first.rule).counting.keeps_each else (),
        answers=tuple(sorted(set(zip(shown["api_name"], shown["what"], strict=True)))[:NAMES_KEPT]),
    )  # fmt: skip


def _greatest(values: Iterable[Any]) -> Any:
    """None if all are None."""
    return max((value for value in set(values) if value is not None), default=None)
