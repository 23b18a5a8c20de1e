"""An incident as Markdown, for a ticket or a chat: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.format import code, literal, literal_prose, seen
from pipeline.dashboard.web.parts.story import dated_lines
from pipeline.dashboard.web.zone import zoned

_EVIDENCE = 5
"""Exchanges that are named of each finding."""


def ticket(incident: dict[str, Any], findings: Sequence[IncidentFinding], address: str = "") -> str:
    """What an incident says, as Markdown: names of the wire as text, commands and properties as code.

    Args:
        incident: its row.
        findings: of it, in order.
        address: of its page.
    """
    state = STATE_WORDS.get(incident["state"], incident["state"])
    lines = [
        f"## {literal(incident['headline'])}",
        "",
        f"{incident['severity']}, {state}. {literal(incident['impact'])}",
        "",
        f"- **Now:** {literal_prose(incident['immediate_action'])}",
        f"- **Fix:** {literal_prose(incident['remediation'])}",
        f"- **{incident['confidence'].capitalize()}:** {literal_prose(incident['reasoning'])}",
        f"- **Seen:** {seen(incident['first_ts'], incident['last_ts'])}, cluster {code(incident['cluster'])}",
        *([f"- **Page:** <{address}>"] if address else []),
        "",
        *_story(incident),
        "Evidence:",
        "",
        *(_line(one) for one in findings),
        "",
        "```sql",
        incident["sql"].replace("```", ""),
        "```",
    ]
    return "\n".join(lines)


def _story(incident: dict[str, Any]) -> list[str]:
    lines = [f"- {clock}: {literal(text)}" for _, clock, text, _ in dated_lines(incident)]
    return [f"What happened ({zoned('time of day')}):", "", *lines, ""] if lines else []


def _line(one: IncidentFinding) -> str:
    named = [code(name) for name in one.finding["evidence"][:_EVIDENCE]]
    more = len(one.finding["evidence"]) - len(named)
    exchanges = f" Exchanges {', '.join(named)}{f' and {more} more' if more > 0 else ''}." if named else ""
    line = f"**{one.finding['rule']}** {code(one.finding['subject'])}: {literal(one.finding['summary'])}"
    return f"{'  ' * one.depth}- {line}{exchanges}"
