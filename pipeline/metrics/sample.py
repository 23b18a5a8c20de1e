"""A measured value with its name, as Prometheus names metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sample:
    """One value at one time.

    Attributes:
        name: of the metric, with its unit, without the ``_total`` of a counter.
        kind: a ``counter`` only grows while the process runs; a ``gauge`` does not.
        text: what it counts, for people.
        value: now.
        labels: distinguish samples of one metric; of few values, none of them from the wire.
    """

    name: str
    kind: Literal["counter", "gauge"]
    text: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
