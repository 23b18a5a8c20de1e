"""An incident as Markdown: what is of the wire stays text."""

from __future__ import annotations

from typing import Any

from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.parts.ticket import ticket
from tests.pipeline.dashboard.conftest import HOSTILE, at

_INCIDENT = {
    "headline": f"{HOSTILE} sets group g back", "severity": "critical", "state": "open", "impact": "5 records.",
    "do_now": "Run `kafka-consumer-groups.sh`.", "fix": "Set `max.poll.interval.ms`.", "certainty": "certain",
    "why": "It is on the wire.", "first_ts": at(0), "last_ts": at(9), "cluster": "k", "sql": "SELECT 1\n```\nx",
}  # fmt: skip


def finding(rule: str, evidence: list[str]) -> dict[str, Any]:
    return {"rule": rule, "subject": HOSTILE, "summary": HOSTILE, "evidence": evidence}


def test_effects_stand_below_their_cause_and_nothing_of_the_wire_formats() -> None:
    findings = [
        IncidentFinding(finding("stuck_commit", [f"e{n}" for n in range(7)]), 0, ""),
        IncidentFinding(finding("lag_growing", []), 1, "x"),
    ]
    lines = ticket(_INCIDENT, findings, "https://dash.example.org/incident?incident=1f").splitlines()
    assert lines[0].startswith(r"## \*\*x\*\* \<b\>y\<\/b\>")
    assert "- **Now:** Run `kafka-consumer-groups.sh`" in lines[4]
    assert "- **Page:** <https://dash.example.org/incident?incident=1f>" in lines
    root, effect = (line for line in lines if "stuck_commit" in line or "lag_growing" in line)
    assert root.startswith("- **stuck_commit** ``")
    assert root.endswith("Exchanges `e0`, `e1`, `e2`, `e3`, `e4` and 2 more.")
    assert effect.startswith("  - **lag_growing** ``")
    assert lines[-1] == "```"
    assert lines.count("```") == 1  # what the query holds ends no block
