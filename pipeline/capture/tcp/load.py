"""Whether there is time to read all that comes: where packets do not wait, CPU time is held against the capture's own.

Units of work (pipeline.capture.tcp.budgets) are estimates. An agent that takes more time than passes falls behind, and
then packets are dropped blindly. So each unit counts for more than one, until what is read is read in time; what is
dear for its bytes is what goes.
"""

from __future__ import annotations

MOST_LOAD = 0.85
"""CPU time for each second of the capture above which an agent that keeps up reads less."""

MOST_DEAR = 64.0
"""A unit counts for this many at most. What is left then are packets that are counted, not read."""

_LOOK_US = 20_000
"""CPU time, or the capture's own, after which load is looked at again."""

_STEP = 4.0
"""A unit becomes this many times dearer at once, at most. It becomes half as dear in a second: where connections are
read and not read by turns, times without work are no sign that there is time."""

_SECOND_US = 1_000_000


class Load:
    """How busy an agent is.

    Attributes:
        dearness: what a unit counts for: 1, or more while reading takes more time than there is.
    """

    def __init__(self) -> None:
        self.dearness = 1.0
        self._looked: tuple[int, int] | None = None  # CPU time and time of the capture of the last look

    def look(self, cpu_us: int, ts: int) -> None:
        """Reading up to ``ts`` (capture time, µs) has taken so much CPU time, µs, since any fixed moment."""
        if self._looked is None:
            self._looked = cpu_us, ts
        spent, passed = cpu_us - self._looked[0], max(ts - self._looked[1], 0)
        if max(spent, passed) < _LOOK_US:
            return
        self._looked = cpu_us, ts
        load = spent / max(passed, 1)
        less = 0.5 ** (passed / _SECOND_US)
        self.dearness = min(max(self.dearness * min(max(load / MOST_LOAD, less), _STEP), 1.0), MOST_DEAR)
