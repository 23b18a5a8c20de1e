"""Which kinds of rows there are, asked once: a rule about what is rare asks nothing where nothing of it came."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.rules.model import Sources

_KINDS = """
    SELECT true AS is_state, kind, coalesce(error_code, 0) AS code, group_protocol FROM states GROUP BY ALL
    UNION ALL
    SELECT false, kind, coalesce(error_code, 0) AS code, NULL FROM events GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Kinds:
    """What came.

    Attributes:
        states, events: kinds, each with an error code that came with it; 0 stands for none.
        protocols: of groups.
    """

    states: frozenset[tuple[str, int]]
    events: frozenset[tuple[str, int]]
    protocols: frozenset[str | None]

    @property
    def codes_of_states(self) -> frozenset[int]:
        """Error codes of states, whatever their kind."""
        return frozenset(code for _, code in self.states)

    @property
    def codes_of_events(self) -> frozenset[int]:
        """Error codes of events, whatever their kind."""
        return frozenset(code for _, code in self.events)

    def has_state(self, kind: str) -> bool:
        """Whether a state of this kind came."""
        return any(each == kind for each, _ in self.states)

    def has_event(self, kind: str) -> bool:
        """Whether an event of this kind came."""
        return any(each == kind for each, _ in self.events)


def kinds(sources: Sources) -> Kinds:
    """What came, asked once."""
    return sources.once("kinds of rows", lambda: _kinds(sources))


def _kinds(sources: Sources) -> Kinds:
    rows = sources.tables.rows(_KINDS)
    return Kinds(
        frozenset((row.kind, row.code) for row in rows if row.is_state),
        frozenset((row.kind, row.code) for row in rows if not row.is_state),
        frozenset(row.group_protocol for row in rows if row.is_state),
    )
