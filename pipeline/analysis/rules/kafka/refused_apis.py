"""The apis of Kafka of which any request was refused: rules that judge refusals of one ask nothing without."""

from __future__ import annotations

from pipeline.analysis.rules.model import Sources

_REFUSED = "SELECT DISTINCT api_key FROM exchanges WHERE protocol = 'kafka' AND len(error_codes) > 0"


def refused_apis(sources: Sources) -> frozenset[int]:
    """Api keys of exchanges whose response states an error code."""
    return sources.once("apis refused", lambda: frozenset(row.api_key for row in sources.tables.rows(_REFUSED)))
