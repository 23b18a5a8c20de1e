"""Thresholds that several rules go by."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

MONGO_FAILURE_SHARE: Final[Any] = Field(
    default=0.1,
    description="Share of what an application sent meanwhile that must fail, or be repeated, for a warning",
)
MONGO_FAILURE_RUN: Final[Any] = Field(
    default=10, description="Or this many failures or repeats of an application without a success between them"
)
