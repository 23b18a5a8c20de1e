"""What of the data shows the findings of a rule: from it pages choose their pictures, and no page names a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ShownBy:
    """What shows the findings of a rule.

    Attributes:
        what: ``offsets``: its partition or group over time, or where it has none its exchanges; ``requests``: its
            exchanges, because offsets do not show what was asked and answered; ``losses``: what the capture lost.
        is_on_two_connections: whether the second exchange of its evidence follows on a connection of its own.
        is_of_records: whether it is about what becomes of records, also of those of a share group.
        is_of_lag: whether it is about how far a group is behind.
        grows: what grows while it continues, where no offsets show it: how many ``times`` it was seen, or its
            ``latency``.
        further: the page that says more of it than its exchanges and its partition do.
    """

    what: Literal["offsets", "requests", "losses"] = "offsets"
    is_on_two_connections: bool = False
    is_of_records: bool = False
    is_of_lag: bool = False
    grows: Literal["times", "latency"] = "times"
    further: Literal["transactions", "clients"] | None = None
