"""From all findings to incidents: who belongs to which, and a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.analysis.fit import table_of
from pipeline.analysis.incidents.grouping import alone, trees_of
from pipeline.analysis.incidents.report import incident_row, plain_row
from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.case.tree import Tree
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.rules.run import Found, with_earlier
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.safety.guard import attempt, contain
from pipeline.tables import INCIDENTS


@dataclass(frozen=True, slots=True)
class Grouped:
    """Findings with their incidents.

    Attributes:
        findings: the rows that were given, each with its ``incident_id``.
        incidents: rows of ``gold.incidents``, what a person must do first before the others; ``first_us`` and
            ``last_us`` are times, µs since the epoch.
    """

    findings: list[dict[str, Any]]
    incidents: list[dict[str, Any]]


def grouped(rows: Sequence[Mapping[str, Any]]) -> Grouped:
    """All findings as incidents.

    Args:
        rows: as Finding.row gives them; the order does not matter.
    """
    trees = attempt("incidents: grouping", lambda: trees_of(rows), lambda: [alone(row) for row in rows])
    losses = [one for tree in trees if rule_named(tree.root.rule).is_of_capture for one in tree.findings]
    reported = [_reported(tree, losses) for tree in trees]
    of = {finding_id: row["incident_id"] for row in reported for finding_id in row["findings"]}
    return Grouped([{**row, "incident_id": of[row["finding_id"]]} for row in rows], sorted(reported, key=in_order))


def _reported(tree: Tree, losses: Sequence[Known]) -> dict[str, Any]:
    """The row of an incident; where its words fail, with those of its first finding."""
    try:
        return incident_row(tree, losses)
    except Exception as error:
        contain(error, f"incidents: words of {tree.root.rule}", tree.root.findings[0].finding_id)
        return plain_row(tree)


def judged(found: Found, known: Iterable[Mapping[str, Any]], since_us: int | None, settings: RuleThresholds) -> Grouped:
    """What the rules found, and the findings that began before the time that they looked at, as incidents.

    Args:
        found: what they found.
        known: rows of findings as they were judged before; see with_earlier.
        since_us: from when on the rules looked, µs since the epoch; None: at all that there is.
        settings: the pause after which what comes again starts over.
    """
    pause_us = int(settings.episode_pause_seconds * 1_000_000)
    earlier = [row for row in known if since_us is not None and row["first_us"] < since_us]
    return grouped(with_earlier(found, earlier, pause_us))


def in_order(row: Mapping[str, Any]) -> tuple[object, ...]:
    """What must be done first comes first: of the same urgency what concerns most records, then what began first."""
    return row["urgency"], -(row["records"] or 0), row.get("first_us", row.get("first_ts")), row["incident_id"]


def incidents_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of ``gold.incidents`` as :func:`grouped` gives them."""
    return table_of(({**row, "first_ts": row["first_us"], "last_ts": row["last_us"]} for row in rows), INCIDENTS)
