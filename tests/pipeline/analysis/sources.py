"""What rules look at, made of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Rule
from pipeline.analysis.tables import Tables
from pipeline.tables import (
    CONNECTIONS,
    DUPLICATE_FLOWS,
    EXCHANGES_WITH_BODIES,
    GAPS,
    MONGO_COMMANDS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TRANSACTIONS,
)
from tests.pipeline.rows import arrow

NAMED = {
    "exchanges": EXCHANGES_WITH_BODIES, "events": OFFSET_EVENTS, "batches": RECORD_BATCHES, "states": STATE_EVENTS,
    "timeline": OFFSET_TIMELINE, "transactions": TRANSACTIONS, "gaps": GAPS, "commands": MONGO_COMMANDS,
    "waiting": EXCHANGES_WITH_BODIES, "all_copies": DUPLICATE_FLOWS, "connections": CONNECTIONS,
}  # fmt: skip
"""The tables of the lake by the names that rules know them by."""


def tables(**rows: Sequence[dict[str, Any]]) -> Tables:
    """All tables; those that are not given have no rows."""
    return Tables({name: arrow(table, rows.get(name, ())) for name, table in NAMED.items()})


def sources(**rows: Sequence[dict[str, Any]]) -> Sources:
    """All tables; those that are not given have no rows."""
    return Sources(tables(**rows))


def detected(rules: Iterable[type[Rule]], made: Sources, settings: Any) -> list[Finding]:
    """What rules with a pass of their own find, rule by rule."""
    return [one for rule in rules for one in rule.detect(made, settings)]
