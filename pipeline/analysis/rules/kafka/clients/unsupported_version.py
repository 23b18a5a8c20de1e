"""Rule ``unsupported_version``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pydantic import Field

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.claims.kafka.brokers import UNSUPPORTED_VERSION
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, own_clients
from pipeline.analysis.rules.counted import clients, finding, last_of_each, refusal_severity, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.symptoms import CLOSED
from pipeline.analysis.rules.kafka.thresholds import REFUSED_AGAIN_TIMES
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RESOLVED_AFTER_SECONDS, Count, RuleThresholds, Seconds
from pipeline.humanize import clock, listed

VERSIONS = (
    "Now: run the client's last version that worked with it. Fix: update its library: it uses a "
    "request that this broker does not know (Kafka 4 dropped what KIP-896 lists), or it is newer than the broker "
    "and does not ask which versions there are (librdkafka: api.version.request=true, no broker.version.fallback)."
)
NEW_PROTOCOL = KAFKA.meaning(int(ApiKey.CONSUMER_GROUP_HEARTBEAT), KafkaError.UNSUPPORTED_VERSION).advice
"""The client is newer than the brokers, or they do not run the protocol of its group."""


def _asks_new_protocol(case: Case) -> bool:
    """Whether all that was refused is the protocol of KIP-848: the client is newer than what the brokers run."""
    return all("/ConsumerGroupHeartbeat " in str(one.row["subject"]) for one in case.bundle.findings)


class UnsupportedVersion(Rule):
    """A broker did not take a request because of its version."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unsupported_version_times: Count = Field(default=1, description="Requests in a version that the broker refuses")
        refused_again_times: Count = REFUSED_AGAIN_TIMES
        resolved_after_seconds: Seconds = RESOLVED_AFTER_SECONDS

    name = "unsupported_version"
    title = "Unsupported version"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "warning", "info")
    advice = (VERSIONS, NEW_PROTOCOL)
    urgency = REFUSED
    shown_by = ShownBy(further="clients")
    texts = Texts(
        headline=lambda case: (
            f"A broker ({case.server}) does not take requests of {case.who}: "
            f"{listed(sorted({str(one.row['subject']).rpartition('/')[2] for one in case.bundle.findings}))}"
        ),
        now=lambda case: (
            begun(advised(case, "now"))
            if _asks_new_protocol(case)
            else f"Update the library of {case.clients}; until then it cannot work with this broker."
        ),
        fix=lambda case: (
            begun(advised(case, "fix"))
            if _asks_new_protocol(case)
            else "Kafka 4 dropped what KIP-896 lists: kafka-clients 2.1 or later, librdkafka 1.0 or later. A client "
            "newer than its broker must ask first (librdkafka: api.version.request=true)."
        ),
        reasoning=f"{SEEN}the broker's answer, or that it closed the connection.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (CLIENT, None)
    counting = Counting(is_refused=True)
    effects = (Link(("connection_churn",), (CLIENT,), "a refused client connects again"),)
    claims = UNSUPPORTED_VERSION

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Requests that a broker refuses, or closes the connection on, because of their version."""
        answered: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for t in sources.traffic:
            asked = t.cluster, t.server, f"{t.api_name or f'api {t.api_key}'} v{t.api_version}"
            answered[asked] = max(answered[asked], t.answered_us or 0)

        def is_refused(episode: Episode) -> bool:
            # A connection that ended for another reason leaves requests unanswered too, but others get their answers.
            version = episode.subject.rpartition("/")[2]
            taken_us = max(answered[episode.cluster, server, version] for server in episode.servers)
            until_us = taken_us + int(settings.resolved_after_seconds * 1_000_000)
            is_taken = episode.names == (CLOSED,) and episode.last_us <= until_us
            return episode.times >= settings.unsupported_version_times and not is_taken

        for episode in last_of_each(filter(is_refused, sources.episodes.get(cls.name, ()))):
            version = episode.subject.rpartition("/")[2]
            healed_us = episode.healed_us
            since = "" if healed_us is None else f"; since {clock(healed_us)} UTC it uses another one"
            summary = (
                f"{episode.server} did not take the requests {version} of {clients(episode)} {when(episode)}{since}."
            )
            severity = refusal_severity(episode, settings)
            advice = NEW_PROTOCOL if version.startswith("ConsumerGroupHeartbeat ") else VERSIONS
            yield finding(episode, severity, summary, advice, sources, settings.unsupported_version_times)
