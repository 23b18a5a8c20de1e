"""What follows from what, as a small graph: the cause at the top, what follows from it below. Rows in, a chart out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.pictures.colours import palette
from pipeline.dashboard.web.pictures.picture import data
from pipeline.humanize import pluralize

OPEN = "open"
"""Name of the selection that holds the finding that was clicked."""
_LEVEL, _BOX = 92, 52
"""Pixels from level to level, and of a box."""
_GAP = 0.02
"""Between boxes, as a share of the width."""


@dataclass(slots=True)
class Node:
    """Findings of one rule that have the same cause.

    Attributes:
        rule: its name.
        findings: rows of ``gold.findings``, not empty.
        because: how they follow; empty of the root.
        parent: index of the node of their cause; None of the root.
        level: 0 of the root.
    """

    rule: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    because: str = ""
    parent: int | None = None
    level: int = 0

    @property
    def about(self) -> str:
        """What they are about, in a line."""
        one = str(self.findings[0]["subject"])
        return one if len(self.findings) == 1 else f"{one} and {pluralize(len(self.findings) - 1, 'more', 'more')}"


def nodes(findings: Sequence[IncidentFinding]) -> list[Node]:
    """The nodes of a graph, causes before what follows from them.

    Args:
        findings: of an incident, in their order.
    """
    found: list[Node] = []
    of: dict[str, int] = {}
    for one in findings:
        finding, rule = one.finding, one.finding["rule"]
        cause = of.get(one.cause or "")
        if cause is not None and not one.is_effect and found[cause].rule == rule:
            at = cause
        else:
            at = next((i for i, node in enumerate(found) if (node.rule, node.parent) == (rule, cause)), len(found))
        if at == len(found):
            level = 0 if cause is None else found[cause].level + 1
            found.append(Node(rule, [], one.because or ("the same trouble" if cause is not None else ""), cause, level))
        found[at].findings.append(finding)
        of[finding["finding_id"]] = at
    return found


def has_branches(graph: Sequence[Node]) -> bool:
    """Whether something has several effects: a chain is read as well from the order of its findings."""
    parents = [node.parent for node in graph]
    return any(parents.count(parent) > 1 for parent in parents)


def causes_picture(graph: Sequence[Node], *, dark: bool) -> alt.LayerChart:
    """The graph as a chart.

    Args:
        graph: from :func:`nodes`.
        dark: whether it is drawn on a dark background.
    """
    colours = palette(dark=dark)
    boxes = _boxes(graph)
    height = (max(box["level"] for box in boxes) + 1) * _LEVEL - (_LEVEL - _BOX)
    x, x2 = alt.X("left:Q", scale=alt.Scale(domain=[0, 1]), axis=None), alt.X2("right:Q")
    y, y2 = alt.Y("top:Q", scale=alt.Scale(domain=[0, height], reverse=True), axis=None), alt.Y2("bottom:Q")
    middle = alt.X("middle:Q", scale=alt.Scale(domain=[0, 1]), axis=None)
    clicked = alt.selection_point(name=OPEN, fields=["finding"])
    tips = [
        alt.Tooltip("rule:N", title="rule"),
        alt.Tooltip("about:N", title="about"),
        alt.Tooltip("because:N", title="because"),
        alt.Tooltip("summary:N", title="seen"),
    ]
    base = alt.Chart(data(boxes))
    drawn = base.mark_rect(fill=colours.background, stroke=colours.ink, cornerRadius=6, cursor="pointer").encode(
        x, y, x2, y2, strokeWidth=alt.condition("datum.level == 0", alt.value(2.5), alt.value(1)), tooltip=tips
    )
    room = alt.ExprRef(f"width / {round(1 / min(box['right'] - box['left'] for box in boxes), 2)} - 12")
    names = base.mark_text(fontWeight="bold", fontSize=13, dy=-9, color=colours.ink, cursor="pointer", limit=room)
    about = base.mark_text(fontSize=12, dy=9, color=colours.ink, cursor="pointer", limit=room)
    at = alt.Y("at:Q", scale=alt.Scale(domain=[0, height], reverse=True), axis=None)
    layers = [
        *_edges(graph, boxes, height, colours.faint, colours.ink),
        drawn.add_params(clicked),
        names.encode(middle, at, text="rule:N", tooltip=tips),
        about.encode(middle, at, text="about:N", tooltip=tips),
    ]
    return alt.layer(*layers).properties(height=height, width="container").configure_view(strokeWidth=0)


def in_words(graph: Sequence[Node]) -> str:
    """The graph for those who do not see it."""
    lines = []
    for node in graph:
        cause = "" if node.parent is None else f" follows from {graph[node.parent].rule} ({node.because})"
        lines.append(f"{node.rule}, {node.about}{cause}")
    return "; ".join(lines) + "."


def _boxes(graph: Sequence[Node]) -> list[dict[str, Any]]:
    beside: dict[int, list[int]] = {}
    for index, node in enumerate(graph):
        beside.setdefault(node.level, []).append(index)
    boxes = []
    for level, indexes in beside.items():
        width = 1 / len(indexes)
        for place, index in enumerate(indexes):
            node = graph[index]
            boxes.append({
                "index": index, "level": level, "rule": node.rule, "about": node.about, "because": node.because or "-",
                "summary": str(node.findings[0]["summary"]), "finding": str(node.findings[0]["finding_id"]),
                "left": place * width + _GAP, "right": (place + 1) * width - _GAP, "middle": (place + 0.5) * width,
                "top": level * _LEVEL, "bottom": level * _LEVEL + _BOX, "at": level * _LEVEL + _BOX / 2,
            })  # fmt: skip
    return sorted(boxes, key=lambda box: box["index"])


def _is_alone(graph: Sequence[Node], index: int) -> bool:
    """Whether nothing else of its level is where the words beside its line would."""
    return sum(node.level == graph[index].level for node in graph) == 1


def _edges(graph: Sequence[Node], boxes: Sequence[dict[str, Any]], height: int, line: str, ink: str) -> list[alt.Chart]:
    rows = []
    for index, node in enumerate(graph):
        if node.parent is not None:
            above, below = boxes[node.parent], boxes[index]
            rows.append({
                "from": above["middle"], "to": below["middle"], "top": above["bottom"], "bottom": below["top"] - 6,
                "half": (above["bottom"] + below["top"]) / 2, "middle": (above["middle"] + below["middle"]) / 2,
                "because": node.because if _is_alone(graph, index) else "",
            })  # fmt: skip
    if not rows:
        return []
    across = alt.Scale(domain=[0, 1])
    down = alt.Scale(domain=[0, height], reverse=True)
    base = alt.Chart(data(rows))
    lines = base.mark_rule(color=line, strokeWidth=1.5).encode(
        alt.X("from:Q", scale=across, axis=None), alt.Y("top:Q", scale=down, axis=None), alt.X2("to:Q"),
        alt.Y2("bottom:Q"),
    )  # fmt: skip
    heads = base.mark_point(shape="triangle-down", filled=True, size=70, color=line, opacity=1).encode(
        alt.X("to:Q", scale=across, axis=None), alt.Y("bottom:Q", scale=down, axis=None)
    )
    words = base.mark_text(fontSize=11, align="left", dx=8, color=ink, limit=alt.ExprRef("width / 2 - 10")).encode(
        alt.X("middle:Q", scale=across, axis=None), alt.Y("half:Q", scale=down, axis=None), text="because:N"
    )
    return [lines, heads, words]
