"""Thresholds of rule ``connection_failed``, which all shapes of failures go by."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.rules.capture.thresholds import CHURN_CHECKS
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds


class ConnectionThresholds(RuleThresholds):
    """When connections that fail, or pause, are a finding."""

    connection_failures: Count = Field(
        default=3, description="Connections that fail in one way at one server, or of one client there"
    )
    connection_restart_seconds: Seconds = Field(
        default=60, description="So long a server that answered before may refuse connections: it restarts"
    )
    connection_pause_seconds: Seconds = Field(
        default=30, description="Silence of a connection after which something between may have forgotten it"
    )
    connection_stall_seconds: Seconds = Field(
        default=10, description="So long a side of a connection asks to be sent nothing, as it does not read"
    )
    churn_checks: Annotated[int, Field(ge=3)] = CHURN_CHECKS
