"""Findings about what a group reads without commits, or does not read, by their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.tables import Row

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.progress.thresholds import ProgressThresholds


class Place:
    """A partition as rows of queries name it."""

    def __init__(self, cluster: str, topic: str, partition: int, group_id: str, exchange_id: str) -> None:
        self.cluster, self.topic, self.partition, self.group_id = cluster, topic, partition, group_id
        self.first_exchange = self.last_exchange = exchange_id


def finding_of(
    rule: str, severity: str, row: Row | Place, span_us: tuple[int, int], details: dict[str, Any],
    sources: Sources, settings: ProgressThresholds,
) -> Finding:  # fmt: skip
    """A finding about a place (cluster, topic, partition, group_id, first and last exchange), by its shape.

    Where no group is known, its subject is the client.
    """
    partition = None if details["shape"] in words.OF_TOPICS else row.partition
    place = row.topic if partition is None else f"{row.topic}-{partition}"
    whose = row.group_id or details["clients"]
    first_us, last_us = span_us
    state: State = sources.state_unhealed(row.cluster, first_us, last_us, 1)
    return Finding(
        rule=rule, severity=severity, subject=f"{whose}/{place}", state=state, cluster=row.cluster,
        topic=row.topic, partition=partition, group_id=row.group_id or None, first_us=first_us, last_us=last_us,
        summary=words.summary(row.group_id, place, first_us, last_us, details),
        advice=words.advice(row.group_id, row.topic, row.partition, details),
        evidence=list(dict.fromkeys((row.first_exchange, row.last_exchange)))[: settings.max_evidence],
        details={**details, **({"known_until_us": last_us} if state == "unknown" else {})},
    )  # fmt: skip
