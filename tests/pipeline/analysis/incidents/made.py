"""Findings made by hand, as rules would give them."""

from __future__ import annotations

import json
from typing import Any

from pipeline.analysis.rules.model import Finding

SECOND = 1_000_000
T0 = 1_795_000_000 * SECOND


def found(
    rule: str,
    subject: str = "s",
    begin: float = 0,
    end: float | None = None,
    *,
    enough: float | None = None,
    severity: str = "warning",
    state: Any = "ongoing",
    cluster: str = "k",
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    summary: str = "It is so.",
    advice: str = "Now: stop it. Fix: mend it.",
    **details: Any,
) -> dict[str, Any]:
    """A finding that began and was seen last this many seconds after :data:`T0`; ``enough`` is when it was told."""
    first_us, last_us = T0 + int(begin * SECOND), T0 + int((begin + 10 if end is None else end) * SECOND)
    stated = first_us if enough is None else T0 + int(enough * SECOND)
    return Finding(
        rule=rule, severity=severity, subject=subject, state=state, cluster=cluster, topic=topic, partition=partition,
        group_id=group, first_us=first_us, last_us=last_us, summary=summary, advice=advice, evidence=["e"],
        details={"enough_us": stated, **details},
    ).row()  # fmt: skip


def details_of(row: dict[str, Any]) -> dict[str, Any]:
    """The figures of a finding."""
    stated: dict[str, Any] = json.loads(row["details"])
    return stated
