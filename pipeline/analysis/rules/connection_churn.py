"""Rule ``connection_churn``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.brokers import CONNECTION_CHURN
from pipeline.analysis.rules.capture.thresholds import CHURN_CHECKS
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import WASTES
from pipeline.analysis.rules.churning import CHECK_ADVICE, KAFKA_ADVICE, MONGO_ADVICE, NAME, churning_clients
from pipeline.analysis.rules.closed_midway import CLOSED_ADVICE
from pipeline.analysis.rules.kafka.clients.long_polls import POLL_ADVICE, given_up_polls
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds


class ConnectionChurn(Rule):
    """A client connects again for each little piece of work."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        churn_connections: Annotated[int, Field(ge=2)] = Field(
            default=30, description="Connections that one client opens within a minute"
        )
        churn_requests: Annotated[float, Field(ge=0)] = Field(
            default=3.0, description="At most this many requests beside the handshake on each (median)"
        )
        churn_checks: Annotated[int, Field(ge=3)] = CHURN_CHECKS
        churn_closed: Count = Field(
            default=3, description="Connections that a client closes, one after the other, while their answer is coming"
        )

    name = NAME
    title = "Connection churn"
    protocol = "capture"
    about = "clients and brokers"
    severities = ("warning", "info")
    reads = ("exchanges", "waiting", "commands", "connections", "gaps")
    found_by = (churning_clients, given_up_polls)
    advice = (KAFKA_ADVICE, MONGO_ADVICE, CHECK_ADVICE, *CLOSED_ADVICE, POLL_ADVICE)
    urgency = WASTES
    gathered = OF_CLIENT
    effects = (Link(("fetch_session_churn",), (CLIENT,), "each connection begins new fetch sessions"),)
    claims = CONNECTION_CHURN
