"""The span of time for which it is stated how things are."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_US = 1_000_000
"""A rate of less than a second says nothing."""


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time up to now, µs since the epoch.

    Attributes:
        first_us: its begin, exclusive; never before the first frame that is kept, since nothing is known of what was
            before.
        last_us: now, inclusive.
    """

    first_us: int
    last_us: int

    @classmethod
    def of(cls, now_us: int, since_us: int, length_us: int) -> Window:
        """The window of ``length_us`` that ends now, or as much of it as there are frames of, a second at least.

        Args:
            now_us: its end.
            since_us: time of the first frame that is kept.
            length_us: how long it is wanted.
        """
        return cls(now_us - max(min(length_us, now_us - since_us + 1), LEAST_US), now_us)

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.last_us - self.first_us) / 1_000_000
