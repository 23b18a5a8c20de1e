"""Trees of findings: a root, and effects that each have one cause."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.rules.case.bundle import Bundle
from pipeline.analysis.rules.case.entities import Known
from pipeline.analysis.rules.model import SEVERITIES

SAME = "it is the same trouble"
"""Why findings of one rule belong together."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A cause, an effect, and the kinds of names that they must share, beside their cluster.

    Attributes:
        because: how the one leads to the other, as the end of "the second follows from the first: …".
    """

    cause: str
    effect: str
    shares: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class Node:
    """A bundle with the one that it follows from."""

    bundle: Bundle
    parent: Bundle | None = None
    edge: Edge | None = None


@dataclass(frozen=True)
class Tree:
    """One trouble: its root first, each effect behind its cause."""

    nodes: tuple[Node, ...]

    @property
    def root(self) -> Bundle:
        """What all others follow from."""
        return self.nodes[0].bundle

    @property
    def findings(self) -> tuple[Known, ...]:
        """All findings, the root first."""
        return tuple(one for node in self.nodes for one in node.bundle.findings)

    def worst(self) -> Tree:
        """What is reported: all of it, but of a root for information only the worst of what follows from it."""
        first, *others = self.nodes
        if not others or first.bundle.severity != "info":
            return self
        worst = min(others, key=lambda node: (SEVERITIES.index(node.bundle.severity), node.bundle.order))
        if worst.bundle.severity == "info":
            return self
        found, kept = [Node(worst.bundle)], {id(worst.bundle)}
        for node in others:
            if id(node.parent) in kept:
                found.append(node)
                kept.add(id(node.bundle))
        return Tree(tuple(found))

    def links(self) -> list[tuple[str, str, str]]:
        """Of each finding but the root: its id, its cause's, and why."""
        found = []
        for node in self.nodes:
            first, *others = node.bundle.findings
            if node.parent is not None and node.edge is not None:
                found.append((first.finding_id, node.parent.findings[0].finding_id, node.edge.because))
            found += [(one.finding_id, first.finding_id, SAME) for one in others]
        return found
