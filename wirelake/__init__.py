"""Wirelake for Python: decode frames, diagnose captures, query a lake, draw its charts.

Importing it costs milliseconds and needs nothing beside the standard library; what a name needs is loaded when the
name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decoder import Codec, Message
    from pipeline.dashboard.charts import (
        finding_chart,
        group_chart,
        latency_chart,
        offsets_chart,
        slowest_chart,
        traffic_chart,
    )
    from pipeline.dashboard.sql import query
    from pipeline.embedded.diagnosis import Diagnosis
    from pipeline.errors import UserError
    from wirelake.captures import IncompleteWarning, diagnose

__all__ = [
    "Codec",
    "Diagnosis",
    "IncompleteWarning",
    "Message",
    "UserError",
    "diagnose",
    "finding_chart",
    "group_chart",
    "latency_chart",
    "offsets_chart",
    "query",
    "slowest_chart",
    "traffic_chart",
]

_CHARTS = "pipeline.dashboard.charts"
_MODULES = {
    "Codec": "decoder",
    "Diagnosis": "pipeline.embedded.diagnosis",
    "IncompleteWarning": "wirelake.captures",
    "Message": "decoder",
    "UserError": "pipeline.errors",
    "diagnose": "wirelake.captures",
    "finding_chart": _CHARTS,
    "group_chart": _CHARTS,
    "latency_chart": _CHARTS,
    "offsets_chart": _CHARTS,
    "query": "pipeline.dashboard.sql",
    "slowest_chart": _CHARTS,
    "traffic_chart": _CHARTS,
}
"""Where each name is defined."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'wirelake' has no attribute {name!r}")
    from wirelake.loading import load  # noqa: PLC0415 - what nobody asks for is not loaded

    found = globals()[name] = load(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
