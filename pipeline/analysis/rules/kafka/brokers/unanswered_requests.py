"""Rule ``unanswered_requests``."""

from __future__ import annotations

from pipeline.analysis.rules.case.entities import CLIENT, SERVER
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, never, not_why, own_clients
from pipeline.analysis.rules.kafka.links import RESENT
from pipeline.analysis.rules.kafka.member_texts import SLOW_BROKER
from pipeline.analysis.rules.kafka.thresholds import SLOW_SECONDS
from pipeline.analysis.rules.rule import OF_SERVER, Link, Rule
from pipeline.analysis.rules.thresholds import UNANSWERED_TIMES, Count, RuleThresholds, Seconds
from pipeline.humanize import pluralize

ADVICE = (
    "Now: look whether the broker hangs (garbage collection, disk, network), restart it if it does. Fix: a "
    "request.timeout.ms (librdkafka: socket.timeout.ms, request.timeout.ms of the topic) of the client that is longer "
    "than what the broker takes."
)


class UnansweredRequests(Rule):
    """A broker did not answer requests although their client waited for it."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        slow_seconds: Seconds = SLOW_SECONDS
        unanswered_times: Count = UNANSWERED_TIMES

    name = "unanswered_requests"
    title = "Requests unanswered"
    protocol = "kafka"
    severities = ("critical", "info")
    advice = (ADVICE,)
    urgency = REFUSED
    texts = Texts(
        headline=lambda case: (
            f"Broker {case.server} left {pluralize(case.times, 'request')} of {case.who} without an answer "
            f"({case.kinds})"
        ),
        now=lambda case: (
            f"Look whether broker {case.server} hangs (`jcmd PID Thread.print`, its garbage collection and disk), and "
            "restart it if it does. What was produced may or may not be written."
        ),
        fix=f"{SLOW_BROKER} request.timeout.ms of the clients must be longer than what it takes.",
        reasoning=f"{SEEN}the connections ended without these answers. {not_why('broker')}",
        source=lambda case: f"broker {case.server}",
        affected=own_clients,
        is_cause=never,
    )
    gathered = OF_SERVER
    subject = (SERVER, CLIENT)
    effects = (Link(("duplicate_write", "sequence_gap", "connection_churn"), (CLIENT,), RESENT),)
