"""The first screen, incidents and findings as views: rows of tables in, rows of a screen out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pipeline.analysis.incidents.story import clock_of_line, lines_of
from pipeline.commands.findings import finding_sentences
from pipeline.commands.incidents import STYLES, headed, incident_sentences, nothing, state_of
from pipeline.commands.open.message_views import exchange_block
from pipeline.commands.open.view import (
    WAYS,
    Block,
    Column,
    Connections,
    Messages,
    OneConnection,
    OneExchange,
    OneFinding,
    OneIncident,
    Row,
    Target,
    View,
    prose,
    sentence,
)
from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.queries.progress.groups import Group
from pipeline.dashboard.queries.progress.partitions import Place, trouble
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.queries.traffic.exchange_search import ANY_ERROR, Search
from pipeline.dashboard.web.format import seen
from pipeline.humanize import duration, number, pluralize

_INCIDENTS = (Column(), Column(style="dim"), Column())
_GROUPS = (
    Column("group"), Column("most behind"), Column("lag", is_right=True), Column("behind", is_right=True),
    Column("trouble"),
)  # fmt: skip
_STORY = (Column(style="dim"), Column())


def start_view(
    name: str,
    scope: Scope,
    notes: Sequence[str],
    incidents: Sequence[Mapping[str, Any]],
    count: int,
    groups: Sequence[Group],
    lag: Sequence[dict[str, Any]],
) -> View:
    """The first screen.

    Args:
        name: of what is walked through.
        scope: its time.
        notes: on what was read.
        incidents: rows of ``gold.incidents``, the most urgent first.
        count: how many incidents there are.
        groups: that were seen.
        lag: rows of :func:`pipeline.dashboard.queries.progress.partitions.lag`.
    """
    read, *warnings = notes
    rows = [_incident_row(row, scope.end) for row in incidents]
    if count > len(rows):
        rows.append(Row(("", "", f"and {pluralize(count - len(rows), 'more incident')}"), style="dim"))
    ways = [
        Row(("All connections", "how each began and ended"), Connections()),
        Row(("Messages", "the newest first"), Messages(Search(), "messages")),
        Row(("Errors", "messages that hold an error"), Messages(Search(error=ANY_ERROR), "errors")),
    ]
    blocks = [
        sentence(read, "dim"),
        *(sentence(f"warning: {text}", "yellow") for text in warnings),
        Block("Incidents", _INCIDENTS, rows) if rows else sentence(nothing(0).plain, "green"),
        *([Block("Groups", _GROUPS, list(_group_rows(groups, lag)), is_cut=True)] if groups else []),
        Block("Everything", WAYS, ways),
    ]
    return View(name, tuple(blocks))


def _incident_row(row: Mapping[str, Any], today: datetime) -> Row:
    is_over = row["state"] == "resolved"
    style = "dim" if is_over else STYLES[row["severity"]]
    is_of_today = row["first_ts"].date() == today.date()
    state = state_of(row) or f"since {row['first_ts']:{'%H:%M:%S' if is_of_today else '%Y-%m-%d'}}"
    return Row((row["severity"].upper(), state, row["headline"]), OneIncident(row["incident_id"]), style)


def _group_rows(groups: Sequence[Group], lag: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """Each group with its worst partition, in the order of these; those without a known lag last."""
    worst: dict[Group, dict[str, Any]] = {}
    for row in lag:
        worst.setdefault(Group(row["cluster"], row["group_id"]), row)
    there = set(groups)
    for group in [*(one for one in worst if one in there), *(one for one in groups if one not in worst)]:
        yield _group_row(group, worst.get(group))


def _group_row(group: Group, row: dict[str, Any] | None) -> Row:
    if row is None:
        return Row((group.group_id, "", "unknown", "", ""), group)
    place = f"{row['topic']}-{row['partition']}"
    lag = "unknown" if row["lag"] is None else number(row["lag"])
    return Row((group.group_id, place, lag, duration(row["lag_seconds"]), trouble(row)), group)


def incident_view(row: Mapping[str, Any], findings: Sequence[IncidentFinding]) -> View:
    """An incident: its sentences, what happened, and what it rests on.

    Args:
        row: of ``gold.incidents``.
        findings: of it, in order.
    """
    sentences = incident_sentences(row)  # the last is how sure that is
    rest = [
        *sentences[-1:], ("source", row["source"] or ""), ("affected", row["affected"] or ""),
        ("seen", f"{seen(row['first_ts'], row['last_ts'])}, cluster {row['cluster'] or 'unknown'}"),
    ]  # fmt: skip
    blocks = [
        _heading(row, row["headline"]),
        prose(sentences[:-1]),
        Block("What happened (UTC)", _STORY, list(_story_rows(row))),
        Block("Evidence", (Column(),), [_finding_row(one) for one in findings]),
        Block("Look at", WAYS, list(_ways(row, findings))),
        prose(rest, "More"),
    ]
    return View("incident", tuple(block for block in blocks if block.rows))


def _heading(row: Mapping[str, Any], text: str) -> Block:
    return sentence(f"{headed(row, '').plain}{text}", STYLES[row["severity"]])


def _story_rows(row: Mapping[str, Any]) -> Iterator[Row]:
    for line in lines_of(row):
        yield Row((clock_of_line(line), str(line.get("text") or "")), _target_of_line(line))


def _target_of_line(line: Mapping[str, Any]) -> Target | None:
    try:
        ts = datetime.fromisoformat(str(line["ts"]).replace("Z", "+00:00"))
    except ValueError:
        return None
    if line.get("exchange_id"):
        return OneExchange(str(line["exchange_id"]), ts)
    return OneConnection(str(line["connection_id"]), ts) if line.get("connection_id") else None


def _finding_row(one: IncidentFinding) -> Row:
    because = f" because {one.because}" if one.because else ""
    text = f"{'  ' * one.depth}{one.finding['rule']} {one.finding['subject']}{because}"
    return Row((text,), OneFinding(one.finding["finding_id"]))


def _ways(row: Mapping[str, Any], findings: Sequence[IncidentFinding]) -> Iterator[Row]:
    if row["topic"] is not None and row["partition"] is not None:
        place = Place(row["cluster"], row["topic"], row["partition"], row["group_id"] or "")
        yield Row((f"Partition {row['topic']}-{row['partition']}", "offsets over time"), place)
    if row["group_id"]:
        group = Group(row["cluster"], row["group_id"])
        yield Row((f"Group {row['group_id']}", "members, partitions, rebalances"), group)
    first = next((one.finding for one in findings if one.finding["evidence"]), None)
    if first is not None:
        yield Row(
            ("Evidence", "the exchange that shows it first"), OneExchange(first["evidence"][0], first["first_ts"])
        )


def finding_view(row: Mapping[str, Any], exchanges: Sequence[Mapping[str, Any]]) -> View:
    """A finding with the exchanges that show it, in the order of time."""
    blocks = [
        _heading(row, f"{row['rule']} {row['subject']}"),
        sentence(row["summary"] or ""),
        prose(finding_sentences(row)),
        exchange_block(f"Evidence: {pluralize(len(row['evidence'] or ()), 'exchange')}", exchanges),
    ]
    return View(f"finding {row['rule']}", tuple(blocks))
