"""Rule ``fetch_session_churn``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, own_clients
from pipeline.analysis.rules.rule import OF_CLUSTER, Counting, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds, Share

SESSIONS = (
    "Now: nothing, unless the broker's CPU is short. Fix: the broker keeps "
    "max.incremental.fetch.session.cache.slots sessions (1000) and drops the oldest: with more consumers and "
    "followers than that, raise it. If only this client does it, look for one that is made anew for each read, or "
    "a library with a fault."
)


class FetchSessionChurn(Rule):
    """A client opens a new fetch session for most of its fetches."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        churn_sessions: Count = Field(default=10, description="Fetch sessions that one client opens")
        churn_share: Share = Field(default=0.5, description="Their share of its fetches")
        costly_sessions: Count = Field(default=300, description="So many of them within a while are a warning")
        costly_sessions_seconds: Seconds = Field(default=600.0, description="How long that while is")

    name = "fetch_session_churn"
    title = "Fetch session churn"
    protocol = "kafka"
    severities = ("warning", "info")
    advice = (SESSIONS,)
    urgency = WASTES
    texts = Texts(
        headline=lambda case: (
            f"{case.who} asks for a fetch session in vain: the broker's cache of them is full, or it keeps none, and "
            "all partitions are sent in full each time"
            if case.details.get("in_vain")
            else f"{case.who} begins a new fetch session with each fetch: all partitions are sent in full each time"
        ),
        now=lambda _case: "Nothing has to be stopped.",
        fix="Keep one consumer instead of making one for each read; raise max.incremental.fetch.session.cache.slots "
        "(1000) of the brokers if many consumers share them.",
        reasoning=f"{SEEN}session ids and epochs of the requests.",
        affected=own_clients,
    )
    gathered = OF_CLUSTER
    subject = (CLIENT,)
    counting = Counting(keeps_each=True)
