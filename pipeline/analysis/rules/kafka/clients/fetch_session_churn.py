"""Rule ``fetch_session_churn``."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from pipeline.analysis.claims.kafka.brokers import FETCH_SESSION_CHURN
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import SEEN, WASTES, Texts, own_clients
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, when
from pipeline.analysis.rules.kafka.clients.traffic import fetches_during
from pipeline.analysis.rules.kafka.symptoms import NO_SESSION, OPENED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLUSTER, Counting, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds, Share
from pipeline.humanize import pluralize, seconds

SESSIONS = (
    "Now: nothing, unless the broker's CPU is short. Fix: the broker keeps "
    "max.incremental.fetch.session.cache.slots sessions (1000) and drops the oldest: with more consumers and "
    "followers than that, raise it. If only this client does it, look for one that is recreated for each read, or "
    "a library with a fault."
)


class FetchSessionChurn(Rule):
    """A client opens a new fetch session for most of its fetches."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        churn_sessions: Count = Field(default=10, description="Fetch sessions that one client opens")
        churn_share: Share = Field(default=0.5, description="Their share of its fetches")
        costly_sessions: Count = Field(default=300, description="This many of them within a while are a warning")
        costly_sessions_seconds: Seconds = Field(default=600.0, description="How long that while is")

    name = "fetch_session_churn"
    title = "Fetch session churn"
    protocol = "kafka"
    about = "metadata"
    severities = ("warning", "info")
    advice = (SESSIONS,)
    urgency = WASTES
    texts = Texts(
        headline=lambda case: (
            f"{case.who} asks for a fetch session without success: the broker's cache of them is full, or it keeps "
            "none, and all partitions are sent in full each time"
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
    claims = FETCH_SESSION_CHURN

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """A client whose fetches mostly open a session, or ask for one without success, instead of continuing one."""
        seen = sources.episodes.get(cls.name, ())
        givers = {one.server for e in seen for one in e.each if one.what == OPENED}
        many = [e for e in seen if e.times >= settings.churn_sessions]
        fetches = fetches_during(sources.tables, many)
        for episode in last_of_each(e for e in many if e.times >= settings.churn_share * fetches[e]):
            times = fetches[episode]
            span_us = int(settings.costly_sessions_seconds * 1_000_000)
            busiest = _busiest([one.us for one in episode.each], span_us)
            in_vain = 2 * sum(one.what == NO_SESSION for one in episode.each) > len(episode.each)
            did = "asked for a fetch session without success" if in_vain else "began a new fetch session"
            why = ", for the broker's cache of sessions is full, or it keeps none" if in_vain else ""
            summary = (
                f"{clients(episode)} {did} {when(episode)}, in {pluralize(times, 'fetch', 'fetches')}, up to {busiest} "
                "within "
                f"{seconds(span_us)}{why}: each time all partitions are sent in full ({names(episode)})."
            )
            keeps_none = in_vain and givers.isdisjoint(episode.servers)  # as far as it was seen
            severity = "warning" if busiest >= settings.costly_sessions and not keeps_none else "info"
            made = finding(episode, severity, summary, SESSIONS, sources, settings.churn_sessions)
            yield replace(made, details={**made.details, "busiest": busiest, "in_vain": in_vain})


def _busiest(times_us: Sequence[int], span_us: int) -> int:
    """The most of ascending times that lie within a span, µs."""
    return max((end + 1 - bisect_left(times_us, us - span_us) for end, us in enumerate(times_us)), default=0)
