"""An incident as Markdown: what is of the wire stays text."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest

from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.format import literal
from pipeline.dashboard.web.parts.ticket import ticket
from tests.pipeline.dashboard.conftest import HOSTILE, at

_INCIDENT = {
    "headline": f"{HOSTILE} sets group g back", "severity": "critical", "state": "ongoing", "impact": "5 records.",
    "immediate_action": "Run `kafka-consumer-groups.sh`.", "remediation": "Set `max.poll.interval.ms`.",
    "confidence": "certain", "reasoning": "It is on the wire.", "first_ts": at(0), "last_ts": at(9), "cluster": "k",
    "sql": "SELECT 1\n```\nx",
}  # fmt: skip


def finding(rule: str, evidence: list[str]) -> dict[str, Any]:
    return {"rule": rule, "subject": HOSTILE, "summary": HOSTILE, "evidence": evidence}


def test_effects_stand_below_their_cause_and_nothing_of_the_wire_formats() -> None:
    findings = [
        IncidentFinding(finding("stuck_commit", [f"e{n}" for n in range(7)]), 0, ""),
        IncidentFinding(finding("lag_growing", []), 1, "x"),
    ]
    lines = ticket(_INCIDENT, findings, "https://dash.example.org/incident?incident=1f").splitlines()
    assert lines[0].startswith(r"## [\*\*x\*\* \<b>y\</b>")
    assert lines[0].endswith("](<https://dash.example.org/incident?incident=1f>)")
    assert "- **Now:** Run `kafka-consumer-groups.sh`" in lines[4]
    root, effect = (line for line in lines if "stuck_commit" in line or "lag_growing" in line)
    assert root.startswith("- **stuck_commit** ``")
    assert root.endswith("Exchanges `e0`, `e1`, `e2`, `e3`, `e4` and 2 more.")
    assert effect.startswith("  - **lag_growing** ``")
    assert lines[-1] == "```"
    assert lines.count("```") == 1  # what the query holds ends no block


def test_what_happened_is_listed_in_the_order_of_time() -> None:
    story = [
        {"ts": "2026-11-21T04:46:08.921533Z", "actor": HOSTILE, "text": f"{HOSTILE} commits", "exchange_id": "a-1"},
        {"ts": "2026-11-21T04:46:09.037977Z", "actor": "group g", "text": "group g begins generation 2"},
        {"ts": "no time", "text": "nothing"},
    ]
    lines = ticket({**_INCIDENT, "story": json.dumps(story)}, []).splitlines()
    begin = lines.index("What happened (time of day, UTC):")
    assert lines[begin + 2] == f"- 04:46:08.92: {literal(f'{HOSTILE} commits')}"
    assert lines[begin + 3 : begin + 5] == ["- 04:46:09.03: group g begins generation 2", ""]
    assert "What happened" not in ticket({**_INCIDENT, "story": None}, [])


def test_only_what_would_format_has_a_backslash() -> None:
    headline = "worker-1 (10.0.0.5) set __consumer_offsets-3 back, 2 times; see `x`, a_b. 3 < 4!"
    incident = {**_INCIDENT, "headline": headline, "impact": "134 records waiting (153 offsets - 19 markers)."}
    copied = ticket(incident, [], "")
    assert copied.splitlines()[0] == f"## {headline.replace('`', chr(92) + '`')}"
    assert copied.count(chr(92)) == 2
    assert "134 records waiting (153 offsets - 19 markers)." in copied


@pytest.mark.parametrize(
    "text",
    [
        "_a_ b __c__", "snake_case_name and __consumer_offsets", "*a* 1 * 2", "~~gone~~", "[l](x) [l] [l][m]",
        "<b>x</b> <!-- y --> 1 < 2 <3", "&amp; &#38; a && b", r"\\* \\a", "`a` ``b", HOSTILE.replace("http://", ""),
    ],
)  # fmt: skip
def test_a_text_of_the_wire_reads_as_it_is(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    drawn = markdown_it.MarkdownIt("commonmark").enable("strikethrough").renderInline(literal(text))
    assert "<" not in drawn
    assert html.unescape(drawn) == text
