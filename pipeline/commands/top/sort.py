"""The order of the rows of the screen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Sort(str, Enum):
    """By what rows are ordered: groups by lag or trend, all else by the others."""

    lag = "lag"
    trend = "trend"
    rate = "rate"
    p99 = "p99"
    errors = "errors"


_OF_GROUPS = (Sort.lag, Sort.trend)


@dataclass(frozen=True, slots=True)
class Order:
    """How rows are ordered: groups, and all else."""

    groups: Sort = Sort.lag
    others: Sort = Sort.rate

    def by(self, sort: Sort) -> Order:
        """The same, by something else."""
        return Order(sort, self.others) if sort in _OF_GROUPS else Order(self.groups, sort)
