"""Texts that incidents of slow brokers share."""

from __future__ import annotations

SLOW_BROKER = (
    "Watch the broker's request queue and disk (RequestHandlerAvgIdlePercent, log flush times) and its garbage "
    "collection; move partitions away from a broker that has too many."
)
