"""A moment: what somebody did at a time, as one exchange states it; and how moments that repeat become one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

import orjson

MOST_OF_ONE = 8
"""Moments that a finding, and an incident, has at most."""
MOST_LETTERS = 120
"""A name of the wire may have 32,767; a line shows this many of them."""
_SHORT_US = 100_000
"""Repeats closer than this, µs, have no period that a person can use."""
_LAST_US = 253_402_300_799_999_999
_REGULAR = 1.5
"""Of moments that were not all read, an average that is this many times the shortest gap is no period."""
_LEAST_WITH_PERIOD = 5
"""Of fewer repeats an average says little: they may have come in two bursts."""
_NEEDED = {"us", "actor", "does"}
_NUMBERS = ("us", "last_us", "times", "low", "high", "took_us", "gap_us")


@dataclass(frozen=True, slots=True)
class Moment:
    """What somebody did, once or again and again.

    Attributes:
        us, last_us: when it was done first and last, µs since the epoch.
        actor: who did it: a client, a broker, a group.
        does: what, without numbers that change from time to time.
        low, high: the least and the greatest of these numbers, which are behind ``does``; None: there are none.
        behind: the end of the sentence.
        note: what is known besides, of the last time.
        times: how often.
        took_us: the longest wait for an answer, µs; None: it is not worth a word.
        exchange_id: the exchange of the first time; None: a connection without exchanges, or nothing at all.
        connection_id: that connection.
        is_turn: whether something changed hands: what is done again afterwards is another moment.
        is_refused: whether it went wrong.
        is_least: whether it may have been done more often than was read.
        is_mixed: whether the numbers did not ascend.
        gap_us: the shortest time between two of them, µs; None: it was done once.
    """

    us: int
    actor: str
    does: str
    exchange_id: str | None = None
    low: int | None = None
    high: int | None = None
    behind: str = ""
    note: str = ""
    times: int = 1
    last_us: int = 0
    took_us: int | None = None
    connection_id: str | None = None
    is_turn: bool = False
    is_refused: bool = False
    is_least: bool = False
    is_mixed: bool = False
    gap_us: int | None = None

    def __post_init__(self) -> None:
        """Fill in the time of the last time, and cut what is too long for a line."""
        object.__setattr__(self, "last_us", max(self.us, self.last_us))
        for name in ("actor", "does", "behind", "note"):
            object.__setattr__(self, name, _cut(getattr(self, name)))

    @property
    def key(self) -> tuple[str, str, str]:
        """What a moment and its repetition have in common."""
        return self.actor, self.does, self.behind

    def with_another(self, other: Moment) -> Moment:
        """Both as one; they have the same key."""
        first, last = (self, other) if self.us <= other.us else (other, self)
        return replace(
            first, last_us=max(first.last_us, last.last_us), times=first.times + last.times,
            low=_least(first.low, last.low), high=_greatest(first.high, last.high),
            took_us=_greatest(first.took_us, last.took_us), note=last.note,
            is_refused=first.is_refused or last.is_refused, is_least=first.is_least or last.is_least,
            is_mixed=first.is_mixed or last.is_mixed or _is_below(last.low, first.high),
            gap_us=_least(_least(first.gap_us, last.gap_us), max(last.us - first.last_us, 0)),
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The line: who does what, and how often."""
        numbers = _numbers(self.low, self.high, is_mixed=self.is_mixed)
        most, then = ("up to ", "by then ") if self.times > 1 else ("", "")
        took = "" if self.took_us is None else f", answered after {most}{_span(self.took_us)}"
        aside = "; ".join(one for one in (self._repeats, self.note and f"{then}{self.note}") if one)
        return f"{self.actor} {self.does}{numbers}{self.behind}{took}{f' ({aside})' if aside else ''}"

    @property
    def _repeats(self) -> str:
        if self.times < 2:
            return ""
        span = f" in {_span(self.last_us - self.us)}" if self.last_us - self.us >= _SHORT_US else ""
        if self.is_least and self.times < _LEAST_WITH_PERIOD:
            return f"several times{span}"
        least = "at least " if self.is_least else ""
        return f"{least}{self.times:,} times{span}{self._period}"

    @property
    def _period(self) -> str:
        period_us = (self.last_us - self.us) // (self.times - 1)
        is_known = not self.is_least or (self.gap_us is not None and period_us <= _REGULAR * self.gap_us)
        if period_us < _SHORT_US or self.times < _LEAST_WITH_PERIOD or not is_known:
            return ""
        return f", about every {_span(period_us)}"


def text_of(moments: Iterable[Moment]) -> str:
    """Moments as JSON, for the column ``moments`` of ``gold.findings``; what is not known is left out."""
    return orjson.dumps([_known(one) for one in moments]).decode()


def _known(one: Moment) -> dict[str, Any]:
    stated = asdict(one).items()
    return {**{name: value for name, value in stated if value != _DEFAULTS.get(name, ...)}, "text": one.text}


def moments_of(text: object) -> tuple[Moment, ...]:
    """Moments from such JSON; none from anything else."""
    try:
        found = orjson.loads(text) if isinstance(text, str) else []
    except orjson.JSONDecodeError:
        return ()
    return tuple(made for one in (found if isinstance(found, list) else []) if (made := _moment(one)) is not None)


_FIELDS = {one.name for one in fields(Moment)}
_DEFAULTS = {one.name: one.default for one in fields(Moment) if one.name not in _NEEDED}


def _moment(one: object) -> Moment | None:
    if not isinstance(one, dict):
        return None
    known = {name: value for name, value in one.items() if name in _FIELDS}
    if not known.keys() >= _NEEDED:
        return None
    is_right = all(
        isinstance(value, bool) if name.startswith("is_") else type(value) is int if name in _NUMBERS
        else isinstance(value, str)
        for name, value in known.items()
    )  # fmt: skip
    return Moment(**known) if is_right else None


def stamp_of(us: int) -> str:
    """A time to the microsecond as ISO 8601 has it, UTC; what is outside of the years 1970 to 9999 is their limit."""
    known = min(max(us, 0), _LAST_US)
    time = datetime.fromtimestamp(known // 1_000_000, timezone.utc)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{known % 1_000_000:06}Z"


def _numbers(low: int | None, high: int | None, *, is_mixed: bool) -> str:
    if low is None:
        return ""
    if low == high:
        return f" {low}"
    return f" {low} to {high}{', not in order' if is_mixed else ''}"


def _is_below(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


def _span(us: int) -> str:
    return f"{us / 1_000_000:.1f} s" if us < 60_000_000 else f"{us / 60_000_000:.1f} min"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def _least(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)


def _greatest(one: int | None, other: int | None) -> int | None:
    return max((n for n in (one, other) if n is not None), default=None)
