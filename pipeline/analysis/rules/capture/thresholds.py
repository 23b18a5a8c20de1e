"""Thresholds that several rules go by."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

CHURN_CHECKS: Final[Any] = Field(
    default=5, description="Connections in a steady rhythm without any work that are a health check"
)
