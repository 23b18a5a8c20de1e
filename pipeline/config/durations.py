"""Durations as people write them: ``250us``, ``20ms``, ``1.5s``; a number alone is milliseconds."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,12})?)\s*(?P<unit>us|µs|ms|s|)", re.ASCII)
_MICROSECONDS = {"us": 1, "µs": 1, "ms": 1000, "": 1000, "s": 1_000_000}


def microseconds(text: str) -> int | None:
    """A duration in whole microseconds; None if it cannot be understood."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else round(float(found["number"]) * _MICROSECONDS[found["unit"]])
