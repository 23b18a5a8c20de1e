"""Prints incidents: what a person reads who was just called; findings are their evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline.analysis.incidents.story import clock_of_line, lines_of
from pipeline.analysis.rules.case.texts import STAYS
from pipeline.analysis.rules.model import SEVERITIES, STATE_WORDS
from pipeline.humanize import pluralize
from pipeline.terminal.console import Console, printable

Row = Mapping[str, Any]
Commands = Callable[[Row], Sequence[str]]
"""Of an incident the commands that show it."""

STYLES = {"critical": "bold red", "warning": "bold yellow", "info": "bold blue"}
MOST_IN_FULL = 50
"""Incidents that are printed in full; it takes a hundredth of a second for each."""
MOST_IN_SHORT = 100
"""Further ones printed in a line or two; of what is beyond, how many there are."""
_EVIDENCE_SHOWN = 6
_LABEL = 10
"""Width of what is before a text."""
_BELOW = 6
"""Lines of a terminal that what follows the incidents takes: what was read, how many there are, the prompt."""


def show_incidents(
    incidents: Sequence[Row], findings: Iterable[Row], commands: Commands, console: Console, *, hidden: int = 0
) -> None:
    """Print incidents for a person, as they are ordered: in full what is to be done, in short what is not.

    On a terminal that is too small for that, and beyond the first fifty, only what they are and what to do now, and the
    first without what happened; of those beyond another hundred only how many they are.

    Args:
        incidents: rows of ``gold.incidents``.
        findings: rows of ``gold.findings``, of all of them.
        commands: see Commands.
        console: where to.
        hidden: how many more there are that were not asked for.
    """
    known = {row["finding_id"]: row for row in findings}
    if not incidents:
        console.print(nothing(hidden))
        return
    with console.capture() as whole:
        _print_all(incidents, known, commands, console)
    text = whole.get()
    is_cut = console.is_terminal and text.count("\n") + _BELOW > console.height
    if is_cut:
        _print_all(incidents, known, commands, console, is_brief=True)
    else:
        console.file.write(text)
    of = len({finding for row in incidents for finding in row["findings"]})
    summary = f"{pluralize(len(incidents), 'incident')} ({by_severity(incidents)}) from {pluralize(of, 'finding')}"
    console.print(f"\n{summary}. Use --flat to list them.")
    if is_cut:
        console.print(Text("Shortened to fit the terminal; pipe to `less -R` for everything.", "dim"))


def nothing(hidden: int) -> Text:
    """What is where nothing is shown, though so many are there that were not asked for."""
    return Text("No incidents match these filters." if hidden else "Nothing found that looks wrong.", "bold green")


def _print_all(
    incidents: Sequence[Row],
    findings: Mapping[str, Row],
    commands: Commands,
    console: Console,
    *,
    is_brief: bool = False,
) -> None:
    for index, row in enumerate(incidents[: MOST_IN_FULL + MOST_IN_SHORT]):
        is_short = index > 0 and (row["state"] == "resolved" or row["severity"] == "info")
        if (index > 0 and is_brief) or index >= MOST_IN_FULL:
            _print_brief(row, console)
            continue
        console.print()
        shown = {**row, "story": None} if is_brief else row
        print_incident(shown, findings, () if is_short else commands(row), console, is_short=is_short)
    more = incidents[MOST_IN_FULL + MOST_IN_SHORT :]
    if more:
        console.print(f"\nand {pluralize(len(more), 'more incident')} ({by_severity(more)})")


def _print_brief(row: Row, console: Console) -> None:
    """What it is, and unless it is over as much of what to do now as a line holds."""
    console.print(_head(row, ""))
    if row["state"] != "resolved":
        console.print(
            Padding(_text(row["immediate_action"]), (0, 0, 0, 2)), no_wrap=True, overflow="ellipsis", style="dim"
        )


def by_severity(rows: Sequence[Row]) -> str:
    """How many are how severe: ``1 critical, 2 warning``."""
    counts = ((sum(row["severity"] == severity for row in rows), severity) for severity in SEVERITIES)
    return ", ".join(f"{number} {severity}" for number, severity in counts if number)


def print_incident(
    row: Row,
    findings: Mapping[str, Row],
    commands: Sequence[str],
    console: Console,
    before: str = "",
    *,
    is_short: bool = False,
    was: Sequence[str] = (),
) -> None:
    """Print an incident for a person, after ``before``.

    Args:
        row: of ``gold.incidents``.
        findings: rows of ``gold.findings`` by id.
        commands: those that show it, which are not wrapped, so that they can be copied.
        console: where to.
        before: what is before its headline.
        is_short: whether what it rests on is left out.
        was: headlines that were reported of it before.
    """
    lines: list[tuple[str, RenderableType]] = [
        (label, _text(text)) for label, text in incident_sentences(row, is_short, was)
    ]
    if not is_short and (story := lines_of(row)):
        lines.append(("happened", _story(story)))
    lines.append(("evidence", _evidence(row, findings)))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=_LABEL)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(label, text)
    console.print(Group(_head(row, before), Padding(grid, (0, 0, 0, 2))))
    for index, command in enumerate(commands):
        line = Text(f"  {'show' if index == 0 else '':{_LABEL}}  ", "dim")
        console.print(line.append(printable(command), "not dim"), soft_wrap=True)


def incident_sentences(row: Row, is_short: bool = False, was: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The sentences of an incident, each after its label; see :func:`print_incident`."""
    lines = [("impact", row["impact"])]
    if not is_short or row["state"] != "resolved" or row["immediate_action"].startswith(STAYS):
        lines.append(("now", row["immediate_action"]))
    lines.append(("fix", row["remediation"]))
    lines += [("previously", one) for one in was]
    if not is_short:
        lines.append(("confidence", f"{row['confidence'].capitalize()}. {row['reasoning']}"))
    return lines


def _story(lines: Iterable[Row]) -> RenderableType:
    """How it happened, UTC, a line or two each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for one in lines:
        grid.add_row(clock_of_line(one), _text(str(one["text"])))
    return grid


def _head(row: Row, before: str) -> Text:
    return headed(row, before).append(printable(row["headline"]), "bold")


def headed(row: Row, before: str) -> Text:
    """What a headline begins with: how severe it is, and that it is resolved or may be ongoing."""
    head = Text(before, "bold")
    head.append(f"{row['severity'].upper()} ", STYLES[row["severity"]])
    state = state_of(row)
    return head.append(f"{state.upper()} ", "dim") if state else head


def state_of(row: Row) -> str:
    """That it is resolved, or may be ongoing; empty of what is ongoing when the capture ends."""
    return STATE_WORDS.get(row.get("state") or "ongoing", "")


def _evidence(row: Row, findings: Mapping[str, Row]) -> RenderableType:
    """Its findings, effects indented below their causes."""
    causes = {link["finding"]: (link["cause"], link["is_effect"]) for link in orjson.loads(row["links"])}
    shown = [one for one in row["findings"] if one in findings]
    lines = []
    for finding_id in shown[:_EVIDENCE_SHOWN]:
        found = findings[finding_id]
        text = Text("  " * _depth(finding_id, causes))
        text.append(printable(f"{found['rule']} {found['subject']}"))
        if found.get("state") in STATE_WORDS and row["state"] != found["state"]:
            text.append(f" ({STATE_WORDS[found['state']]})", "dim")
        lines.append(text)
    if len(shown) > _EVIDENCE_SHOWN:
        lines.append(Text(f"and {len(shown) - _EVIDENCE_SHOWN} more", "dim"))
    return Group(*lines)


def _depth(finding_id: str, causes: Mapping[str, tuple[str, bool]]) -> int:
    """How many causes an effect has behind it; findings of one trouble are side by side."""
    depth = 0
    for _ in range(len(causes)):
        if finding_id not in causes:
            break
        finding_id, is_effect = causes[finding_id]
        depth += is_effect
    return depth


def chosen(
    incidents: Iterable[Row],
    findings: Iterable[Row],
    rules: Collection[str],
    severities: Collection[str],
    *,
    only_ongoing: bool,
) -> tuple[list[Row], list[Row]]:
    """Incidents and findings of some rules and severities (empty: of all), or only those that are not over.

    An incident is of all rules of its findings.
    """
    kept = [
        row for row in incidents
        if (not rules or set(rules) & set(row["rules"]))
        and (not severities or row["severity"] in severities)
        and not (only_ongoing and row["state"] == "resolved")
    ]  # fmt: skip
    shown = [
        row for row in findings
        if (not rules or row["rule"] in rules)
        and (not severities or row["severity"] in severities)
        and not (only_ongoing and row["state"] == "resolved")
    ]  # fmt: skip
    return kept, shown


def _text(text: str) -> Text:
    return Text(printable(text))
