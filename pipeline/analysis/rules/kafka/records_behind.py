"""How much waits behind an offset: records, and the offsets of transaction markers, which hold none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.humanize import pluralize

MARKERS = "transaction_markers"
"""Name in ``details`` of the markers among the offsets that wait."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Records that wait, and transaction markers between them, as far as these are known."""

    records: int = 0
    markers: int = 0

    def __add__(self, other: Behind) -> Behind:
        return Behind(self.records + other.records, self.markers + other.markers)

    @property
    def figures(self) -> dict[str, int]:
        """For ``details``; of markers only if there are any."""
        return {"records_behind": self.records, **({MARKERS: self.markers} if self.markers else {})}


def less_markers(records: int, markers: int) -> str:
    """What follows a number of records where their offsets span more; empty where they do not."""
    if not markers:
        return ""
    return f" ({pluralize(records + markers, 'offset')} less {pluralize(markers, 'transaction marker')})"


def less_others(records: int, others: int | None) -> str:
    """The same where retention may have removed some of the offsets that hold no records."""
    if not others:
        return ""
    apart = pluralize(others, "transaction marker or removed offset", "transaction markers or removed offsets")
    return f" ({pluralize(records + others, 'offset')} less {apart})"


def records_behind(figures: Mapping[str, Any]) -> str:
    """:attr:`Behind.figures` as text: ``134 records (153 offsets less 19 transaction markers)``."""
    records = figures["records_behind"]
    return f"{pluralize(records, 'record')}{less_markers(records, figures.get(MARKERS, 0))}"


def offsets_or_records(behind: Behind) -> str:
    """Records where markers are known, else offsets: each may be that of a marker that was not captured."""
    return records_behind(behind.figures) if behind.markers else pluralize(behind.records, "offset")
