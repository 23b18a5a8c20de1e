"""An incident for a ticket, a chat or an e-mail: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.analysis.rules.model import STATE_WORDS
from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.format import seen
from pipeline.dashboard.web.parts.story import dated_lines
from pipeline.dashboard.web.parts.styles import Markdown, Style
from pipeline.dashboard.web.zone import zoned

_EVIDENCE = 5
"""Exchanges that are named of each finding."""


def ticket(
    incident: dict[str, Any], findings: Sequence[IncidentFinding], address: str = "", style: Style | None = None
) -> str:
    """What an incident says, with names of the wire as text, commands and properties as code.

    Args:
        incident: its row.
        findings: of it, in order.
        address: of its page.
        style: how it is written; None: as Markdown.
    """
    how = style or Markdown()
    state = STATE_WORDS.get(incident["state"], incident["state"])
    facts = [
        (f"{how.strong('Now:')} {how.prose(incident['immediate_action'])}"),
        (f"{how.strong('Fix:')} {how.prose(incident['remediation'])}"),
        (f"{how.strong(incident['confidence'].capitalize() + ':')} {how.prose(incident['reasoning'])}"),
        (
            f"{how.strong('Seen:')} {seen(incident['first_ts'], incident['last_ts'])}, "
            f"cluster {how.code(incident['cluster'])}"
        ),
    ]
    lines = [
        how.heading(incident["headline"], address),
        "",
        f"{incident['severity']}, {state}. {how.text(incident['impact'])}",
        "",
        *map(how.item, facts),
        "",
        *_story(incident, how),
        "Evidence:",
        "",
        *(_line(one, how) for one in findings),
        "",
        *how.block(incident["sql"]),
    ]
    return "\n".join(lines)


def _story(incident: dict[str, Any], how: Style) -> list[str]:
    lines = [how.item(f"{clock}: {how.text(text)}") for _, clock, text, _ in dated_lines(incident)]
    return [f"What happened ({zoned('time of day')}):", "", *lines, ""] if lines else []


def _line(one: IncidentFinding, how: Style) -> str:
    named = [how.code(name) for name in one.finding["evidence"][:_EVIDENCE]]
    more = len(one.finding["evidence"]) - len(named)
    exchanges = f" Exchanges {', '.join(named)}{f' and {more} more' if more > 0 else ''}." if named else ""
    about = f"{how.strong(one.finding['rule'])} {how.code(one.finding['subject'])}"
    return how.item(f"{about}: {how.text(one.finding['summary'])}{exchanges}", one.depth)
