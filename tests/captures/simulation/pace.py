"""When does what was recorded at one time happen in a simulation? A clock that runs slower, and not evenly."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt

Micros = npt.NDArray[np.int64]

_PIECE_US = 15_000_000
_EVENLY, _UNEVENLY = 1 / 1.25, 1.25


class Pace:
    """A recording's times, and those at which it is played.

    All of a recording is played by one such clock, so that effects stay behind their causes.

    Args:
        first_us, last_us: of the recording, µs since the epoch.
        start_us: when its first moment is played, µs since the epoch.
        stretch: how many times as long it takes; each quarter of a minute takes up to a quarter more or less.
        random: of which that comes.
    """

    def __init__(self, first_us: int, last_us: int, start_us: int, stretch: float, random: Random) -> None:
        pieces = max(-(-(last_us - first_us) // _PIECE_US), 1)
        least = max(_EVENLY, 1 / stretch)
        spans = [_PIECE_US * stretch * random.uniform(least, _UNEVENLY) for _ in range(pieces)]
        self._recorded = first_us + _PIECE_US * np.arange(pieces + 1, dtype=np.float64)
        self._played = start_us + np.concatenate([[0.0], np.cumsum(spans)])
        self.start_us = start_us
        self.end_us = int(self.played(np.array([last_us]))[0])

    def played(self, recorded: Micros) -> Micros:
        """When what was recorded then is played; what is before the recording keeps its distance to it."""
        before = np.minimum(recorded - self._recorded[0], 0)
        return (np.interp(recorded, self._recorded, self._played) + before).astype(np.int64)
