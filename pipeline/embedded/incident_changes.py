"""Incidents that are reported while traffic continues: each when it begins, gets another root, and ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.analysis.rules.model import SEVERITIES

_MOST_GONE = 1_000
"""Incidents with nothing found any more that are known to have been reported."""

_MOST_ROOTS = 100
"""Roots that an incident was reported with, that are known: the last ones."""

IncidentKind = Literal["new", "again", "worse", "root", "resolved"]


@dataclass(frozen=True, slots=True)
class IncidentChange:
    """What is to be reported of an incident.

    Attributes:
        kind: ``new``; ``again`` (it was over); ``worse`` (more severe than reported); ``root`` (what was reported is
            the effect of something else); or ``over``.
        row: of ``gold.incidents``; ``first_us`` and ``last_us`` are its times, µs since the epoch.
        before: headlines that were reported of it, if its root is another one now.
    """

    kind: IncidentKind
    row: Mapping[str, Any]
    before: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reported:
    """An incident as it was reported last, and all roots that it was reported with."""

    row: Mapping[str, Any]
    roots: list[str]


@dataclass(slots=True)
class ReportedIncidents:
    """What of incidents was reported, so that nothing is reported twice.

    An incident of now is the one of before whose root is among its findings; or, if that root is found no more, the
    one with which it shares another finding.
    """

    _last: list[_Reported] = field(default_factory=list)

    def changes(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[IncidentChange]:
        """What is new in all incidents of now, in their order. One with nothing found any more is over."""
        now = list(rows)
        earlier = self._earlier(now)
        all_roots = {root for one in self._last for root in one.roots}
        reported = []
        for index, row in enumerate(now):
            before = earlier.get(index, [])
            roots = [root for one in before for root in one.roots]
            change = _change(row, before, roots)
            was_part_of_another = not before and row["root_id"] in all_roots
            if change is not None and not was_part_of_another:
                yield change
            reported.append(_Reported(row, _newest(roots, row["root_id"])))
        known = {id(one) for some in earlier.values() for one in some}
        gone = [one for one in self._last if id(one) not in known]  # those that went last come first
        for one in gone:
            if one.row["state"] != "resolved":
                one.row = {**one.row, "state": "resolved"}
                yield IncidentChange("resolved", one.row)
        self._last = [*reported, *gone[:_MOST_GONE]]

    def reported(self) -> list[tuple[Mapping[str, Any], list[str]]]:
        """Incidents as they were reported last, each with all roots that it was reported with."""
        return [(one.row, one.roots) for one in self._last]

    def restore(self, reported: Iterable[tuple[Mapping[str, Any], list[str]]]) -> None:
        """Take what :meth:`reported` gave in another process."""
        self._last = [_Reported(row, list(roots)) for row, roots in reported]

    def _earlier(self, now: list[Mapping[str, Any]]) -> dict[int, list[_Reported]]:
        """By index of an incident of now those that were reported and are in it."""
        where = {finding: index for index, row in enumerate(now) for finding in row["findings"]}
        found: dict[int, list[_Reported]] = {}
        for one in self._last:
            root, others = one.row["root_id"], one.row["findings"]
            place = where.get(root, next((where[other] for other in others if other in where), None))
            if place is not None:
                found.setdefault(place, []).append(one)
        return found


def _newest(roots: Iterable[str], root: str) -> list[str]:
    return [*(one for one in dict.fromkeys(roots) if one != root), root][-_MOST_ROOTS:]


def _change(row: Mapping[str, Any], before: list[_Reported], roots: Collection[str]) -> IncidentChange | None:
    if not before:
        return IncidentChange("new", row)
    was_over = all(one.row["state"] == "resolved" for one in before)
    if row["state"] == "resolved":
        return None if was_over else IncidentChange("resolved", row)
    if was_over:
        return IncidentChange("again", row)
    others = [one for one in before if one.row["root_id"] != row["root_id"]]
    if others and (row["root_id"] not in roots or len(others) < len(before)):
        return IncidentChange("root", row, tuple(str(one.row["headline"]) for one in others))
    worst = min(SEVERITIES.index(one.row["severity"]) for one in before)
    return IncidentChange("worse", row) if SEVERITIES.index(row["severity"]) < worst else None
