"""Does the timeline hold exactly what the clients did? Compares a client log with ``gold.offset_timeline``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """What one side has and the other lacks.

    Attributes:
        compared: facts of the clients that were looked up.
        missing: facts of the clients that the timeline does not have.
        surplus: facts of the timeline that no client knows of.
    """

    compared: int
    missing: list[tuple[Any, ...]]
    surplus: list[tuple[Any, ...]]

    @property
    def equal(self) -> int:
        """ClusterCatalog that both sides have."""
        return self.compared - len(self.missing)

    @classmethod
    def of(cls, clients: Iterable[tuple[Any, ...]], timeline: Iterable[tuple[Any, ...]]) -> Comparison:
        """Compare two multisets."""
        theirs, ours = Counter(clients), Counter(timeline)
        return cls(sum(theirs.values()), list((theirs - ours).elements()), list((ours - theirs).elements()))


def client_ids(truth: Row) -> set[str]:
    """The clients that kept a log; brokers and others on the wire are not compared."""
    return {event["client_id"] for event in truth["events"]}


def compare_produced(truth: Row, timeline: Iterable[Row]) -> Comparison:
    """Every acknowledged record: (client id, topic, partition, offset).

    The log ends with the capture; an acknowledgement that was on the wire by then, but not yet in its client's log, is
    not compared: it is later than the last one that this client logged.
    """
    events = [e for e in truth["events"] if e["kind"] == "produced"]
    logged_until: dict[str, int] = {}
    for event in events:
        logged_until[event["client_id"]] = max(event["ts_ms"], logged_until.get(event["client_id"], 0))
    rows = [
        r
        for r in timeline
        if r["kind"] == "produced" and r["ts"].timestamp() * 1000 <= logged_until.get(r["client_id"], -1) + 1
    ]
    return Comparison.of(
        ((e["client_id"], e["topic"], e["partition"], e["offset"]) for e in events),
        (
            (r["client_id"], r["topic"], r["partition"], offset)
            for r in rows
            for offset in range(r["event_offset"], r["event_next_offset"])
        ),
    )


def compare_commits(truth: Row, timeline: Iterable[Row], accepted: bool) -> Comparison:
    """Every commit with its answer, and its place in the order of its client's commits for that partition."""
    kind, row_kind = ("commit_ok", "committed") if accepted else ("commit_error", "commit_rejected")
    events = [e for e in truth["events"] if e["kind"] == kind]
    known = client_ids(truth)
    rows = [r for r in timeline if r["kind"] == row_kind and r["client_id"] in known]
    rows.sort(key=lambda r: (r["ts"], r["exchange_id"]))
    return Comparison.of(
        _numbered((e["client_id"], e["group"], e["topic"], e["partition"], e["offset"]) for e in events),
        _numbered((r["client_id"], r["group_id"], r["topic"], r["partition"], r["event_offset"]) for r in rows),
    )


def _numbered(catalog: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Add to each fact its place among those of the same client, group and partition."""
    seen: dict[tuple[Any, ...], int] = defaultdict(int)
    for fact in catalog:
        yield (*fact, seen[fact[:-1]])
        seen[fact[:-1]] += 1
