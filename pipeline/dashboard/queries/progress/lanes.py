"""The place of each owner in the band below a picture: one lane, unless two owned the partition at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any


def lanes(owners: Sequence[dict[str, Any]]) -> list[int]:
    """The lane of each owner, from 0: the first that is free when it begins.

    Args:
        owners: with ``owned_from`` and ``owned_until``, in order of ``owned_from``.
    """
    ends: list[datetime] = []
    found = []
    for owner in owners:
        free = next((lane for lane, end in enumerate(ends) if end <= owner["owned_from"]), len(ends))
        ends[free : free + 1] = [owner["owned_until"]]
        found.append(free)
    return found
