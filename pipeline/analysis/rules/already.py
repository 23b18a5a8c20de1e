"""Words for what is already so when the capture begins: nothing claims a start that was not seen."""

from __future__ import annotations

from pipeline.humanize import clock


def since_before(first_us: int) -> str:
    """``since before 12:03:04 UTC, when the capture begins``."""
    return f"since before {clock(first_us)} UTC, when the capture begins"


def from_before(first_us: int, last_us: int) -> str:
    """``from before 12:03:04 UTC, when the capture begins, to 12:03:40 UTC``."""
    return f"from before {clock(first_us)} UTC, when the capture begins, to {clock(last_us)} UTC"
