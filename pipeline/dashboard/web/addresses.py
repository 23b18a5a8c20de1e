"""Which address has a view? Parameters for ``link`` and ``go``, so that all who lead there say it alike."""

from __future__ import annotations

from datetime import datetime


def sequence_address(exchange_id: str, near: datetime | None = None) -> dict[str, str]:
    """The connection of an exchange as a sequence, with this exchange marked: of the page ``sequence``.

    Args:
        exchange_id: e.g. the first of a finding's evidence.
        near: when it was, or the finding was, to a day: with it the exchange is found at once.
    """
    return {"exchange": exchange_id, **_day(near)}


def compare_address(exchange_id: str, other_id: str | None = None, near: datetime | None = None) -> dict[str, str]:
    """Two exchanges side by side: of the page ``compare``.

    Args:
        exchange_id: that on the right.
        other_id: that on the left; None: the one of the same api before it on its connection.
        near: when they were, to a day.
    """
    return {"exchange": exchange_id, **({} if other_id is None else {"other": other_id}), **_day(near)}


def day_of(text: str | None) -> datetime | None:
    """The time that an address has as ``near``; None if it is none."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _day(near: datetime | None) -> dict[str, str]:
    return {} if near is None else {"near": f"{near:%Y-%m-%d}"}
