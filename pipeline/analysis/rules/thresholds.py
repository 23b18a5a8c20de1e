"""The model of a rule's thresholds, and what rules of several protocols go by."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Periods = Annotated[float, Field(ge=1)]
Ratio = Periods
Share = Annotated[float, Field(gt=0, le=1)]

SILENCE_PERIODS: Final[Any] = Field(
    default=3.0,
    description="Times as long as the group, partition or member itself usually takes; each span in seconds is the "
    "least of it",
)
RESOLVED_AFTER_SECONDS: Final[Any] = Field(
    default=60.0, description="What was not seen for so long before the end of the data is resolved"
)
AUTH_FAILED_TIMES: Final[Any] = Field(default=1, description="Refused logins or operations")
UNANSWERED_TIMES: Final[Any] = Field(default=3, description="Requests of one client that a broker left unanswered")


class RuleThresholds(BaseModel):
    """What all rules go by; a rule's own thresholds are a subclass. Offsets and growth are records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    episode_pause_seconds: Seconds = Field(
        default=300.0, description="What comes again after a longer pause is counted again"
    )
    resolved_after_seconds: Seconds = RESOLVED_AFTER_SECONDS
    silence_periods: Annotated[float, Field(ge=1)] = SILENCE_PERIODS
    lookback: Annotated[timedelta, Field(ge=timedelta(hours=1))] = Field(
        default=timedelta(days=1), description="How far before the hour of the first news rules look, at least an hour"
    )
    max_evidence: Count = Field(default=20, description="Exchange ids kept with a finding")
