"""What is new in a finding since it was last reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pipeline.analysis.rules.model import SEVERITIES

Kind = Literal["new", "again", "worse", "resolved"]


def kind_of_change(row: Mapping[str, Any], last: Mapping[str, Any] | None) -> Kind | None:
    """``new``; ``again`` (it was over), ``worse`` (more severe) or ``over``; None: nothing that must be reported.

    Args:
        row: of ``gold.findings``, as of now.
        last: the same as it was reported last; None: never.
    """
    if last is None:
        return "new"
    if row["state"] == "resolved":
        return None if last["state"] == "resolved" else "resolved"
    if last["state"] == "resolved":
        return "again" if row["state"] == "ongoing" else None
    return "worse" if SEVERITIES.index(row["severity"]) < SEVERITIES.index(last["severity"]) else None
