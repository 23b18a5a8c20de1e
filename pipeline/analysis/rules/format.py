"""Who, how often, how many: figures of findings as people say them."""

from __future__ import annotations

from pipeline.analysis.rules.model import NAMELESS
from pipeline.humanize import clock


def host_of(address: str) -> str:
    """``ip:port`` without the port."""
    return address.rpartition(":")[0]


def who(client_id: str | None, host: str) -> str:
    """A client by its name and host."""
    return f"{client_id or NAMELESS} at {host}"


def times(number: int, first_us: int, last_us: int) -> str:
    """How often and when."""
    if number == 1:
        return f"once, at {clock(first_us)} UTC"
    return f"{number:,} times from {clock(first_us)} to {clock(last_us)} UTC"


def wait_or_waits(number: int) -> str:
    """Of one it ``waits``, several ``wait``."""
    return "waits" if number == 1 else "wait"
