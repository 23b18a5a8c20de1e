"""Who, how often, how many: figures of findings as people say them."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.rules.model import clock

_SHOWN = 3


def host_of(address: str) -> str:
    """``ip:port`` without the port."""
    return address.rpartition(":")[0]


def who(client_id: str | None, host: str) -> str:
    """A client by its name and host."""
    return f"{client_id or 'a client without client_id'} at {host}"


def some(names: Iterable[str]) -> str:
    """Distinct names in order; beyond three only how many more."""
    found = sorted(set(names))
    more = len(found) - _SHOWN
    return ", ".join(found[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def times(number: int, first_us: int, last_us: int) -> str:
    """How often and when."""
    if number == 1:
        return f"once, at {clock(first_us)} UTC"
    return f"{number} times from {clock(first_us)} to {clock(last_us)} UTC"


def count(number: int, what: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
