"""The address of a view: parameters for ``link`` and ``go``, so that all who lead there state it alike."""

from __future__ import annotations

from datetime import datetime, timezone


def sequence_address(exchange_id: str, near: datetime | None = None) -> dict[str, str]:
    """The connection of an exchange as a sequence, with this exchange marked: of the page ``sequence``.

    Args:
        exchange_id: e.g. the first of a finding's evidence.
        near: when it was, or the finding was: the nearer, the sooner the exchange is found.
    """
    return {"exchange": exchange_id, **_near(near)}


def compare_address(exchange_id: str, other_id: str | None = None, near: datetime | None = None) -> dict[str, str]:
    """Two exchanges side by side: of the page ``compare``.

    Args:
        exchange_id: that on the right.
        other_id: that on the left; None: the one of the same api before it on its connection.
        near: when they were, likewise.
    """
    return {"exchange": exchange_id, **({} if other_id is None else {"other": other_id}), **_near(near)}


def moment_of(text: str | None) -> datetime | None:
    """The time that is in an address; with no zone it is UTC. None: none, or what is there is no time."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def in_address(ts: datetime) -> str:
    """A time as it is in an address, to the microsecond: UTC, whoever looks."""
    return f"{ts.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}"


def _near(near: datetime | None) -> dict[str, str]:
    return {} if near is None else {"near": in_address(near)}
