"""Rule ``mongo_cursor_leak``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, HOST
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, advised, nobody
from pipeline.analysis.rules.rule import OF_CLIENT, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.humanize import listed, pluralize

ADVICE = (
    "Now: restart the application if the server is short of memory. Fix: close cursors in the code that opens them "
    "({closes}), also where it stops reading early or fails, or ask "
    "for no more than is read (`limit`). Each open cursor holds memory and a snapshot on the server, until it has "
    "been idle for ten minutes (cursorTimeoutMillis)."
)


def _cursors(case: Case) -> str:
    left = sum(int(one.details.get("cursors") or 0) for one in case.bundle.findings)
    names = sorted({name for one in case.bundle.findings for name in one.details.get("namespaces", [])})
    return f"{_leaker(case)} leaves {pluralize(left, 'cursor')} on {listed(names)} open at {case.lead.row['cluster']}"


def _leaker(case: Case) -> str:
    application, _, host = str(case.lead.row["subject"]).rpartition("/")
    return f"{application} ({host})"


class MongoCursorLeak(Rule):
    """An application opens cursors, and neither reads them to their end nor closes them."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_open_cursors: Count = Field(default=10, description="Cursors that one application leaves open")
        mongo_cursor_idle_seconds: Seconds = Field(default=30.0, description="Without a use of them for so long")

    name = "mongo_cursor_leak"
    title = "MongoDB cursors left open"
    protocol = "mongodb"
    severities = ("warning",)
    reads = ("commands", "gaps")
    advice = (ADVICE,)
    urgency = WASTES
    texts = Texts(
        headline=_cursors,
        now=lambda case: (
            f"Restart {_leaker(case)} if the server runs short of memory; else cursors end after ten idle minutes."
        ),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=f"{SEEN}the cursors were opened, and neither read to their end nor killed.",
        source=_leaker,
        affected=nobody,
    )
    gathered = OF_CLIENT
    subject = (CLIENT, HOST)
