"""What TCP shows of one connection, in sentences: how it began, what went wrong on the way, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.dashboard.web.format import moment
from pipeline.humanize import duration, pluralize, size

_SIDES = ("client", "server")
_LONG_US = 1_000_000
"""A silence is stated from here on."""


def tcp_in_words(life: dict[str, Any]) -> str:
    """Sentences about a row of :func:`pipeline.dashboard.queries.traffic.connections.life_of`."""
    return " ".join(_sentences(life))


def _sentences(life: dict[str, Any]) -> Iterator[str]:
    begun = moment(life["first_ts"])
    if life["opened"] == "yes":
        trip = life["round_trip_us"]
        yield f"TCP: opened at {begun}{'' if trip is None else f' (SYN to SYN-ACK {trip / 1000:.1f} ms)'}."
    else:
        yield f"TCP: seen from {begun} on; how it was opened was not captured."
    for side, other in zip(_SIDES, _SIDES[::-1], strict=True):
        if again := life[f"{side}_sent_again"]:
            lost = life[f"{side}_unacknowledged"]
            rest = f"; {size(lost)} were never acknowledged" if lost else ""
            yield f"The {side} sent {pluralize(again, 'segment')} again{_when(life, side)}{rest}."
        if stalled := life[f"{side}_stalled_us"]:
            full = life.get(f"{side}_first_zero_window_ts")
            since = "" if full is None else f", first at {moment(full)}"
            yield f"The {side} did not read for {duration(stalled / 1e6)}{since}, so the {other} could send nothing."
    silence = life["silence_us"] or 0
    if silence >= _LONG_US and life["silent_until_ts"] is not None:
        yield f"The longest silence was {duration(silence / 1e6)}, until {moment(life['silent_until_ts'])}."
    yield f"Last packet at {moment(life['last_ts'])}: {life['ended']}."


def _when(life: dict[str, Any], side: str) -> str:
    """Between which times it sent segments again; empty in a lake of an older release."""
    first, last = life.get(f"{side}_first_sent_again_ts"), life.get(f"{side}_last_sent_again_ts")
    if first is None or last is None:
        return ""
    return f" at {moment(first)}" if first == last else f" between {moment(first)} and {moment(last)}"
