"""Rule ``auth_failed``."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.brokers import AUTH_FAILED
from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, SERVER
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, own_clients
from pipeline.analysis.rules.counted import CountedRule, clients, gets_on, names, refusal_severity, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.by_code import by_code
from pipeline.analysis.rules.kafka.refusal_texts import fix, now
from pipeline.analysis.rules.kafka.thresholds import REFUSED_AGAIN_TIMES
from pipeline.analysis.rules.rule import OF_CLIENT, Counting, Link
from pipeline.analysis.rules.thresholds import AUTH_FAILED_TIMES, Count, RuleThresholds
from pipeline.humanize import pluralize


def _headline(case: Case) -> str:
    often = pluralize(case.times, "time") if case.times > 1 else "once"
    return f"Broker {case.server} refuses {case.who} {often}: {case.kinds}"


class AuthFailed(CountedRule):
    """A broker refused a login, or an operation that the principal may not do."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        auth_failed_times: Count = AUTH_FAILED_TIMES
        refused_again_times: Count = REFUSED_AGAIN_TIMES

    name = "auth_failed"
    title = "Authentication or authorization failed"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "warning", "info")
    advice = (BY_CODE,)
    urgency = REFUSED
    texts = Texts(
        headline=_headline,
        now=now,
        fix=fix,
        reasoning=f"{SEEN}the broker's own answer.",
        affected=own_clients,
    )
    gathered = OF_CLIENT
    subject = (SERVER, CLIENT)
    counting = Counting(is_refused=True)
    effects = (
        Link(
            ("connection_churn", "join_refused", "produce_refused", "unknown_topic_loop"),
            (CLIENT,),
            "who is refused tries again",
        ),
    )
    claims = AUTH_FAILED

    @classmethod
    def least(cls, settings: Thresholds) -> int:
        """This many symptoms."""
        return settings.auth_failed_times

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Who was refused how often."""
        return f"{episode.server} refused {clients(episode)} {when(episode)}: {names(episode)}{gets_on(episode)}."

    @classmethod
    def severity_of(cls, episode: Episode, settings: Thresholds) -> str:
        """See refusal_severity."""
        return refusal_severity(episode, settings)

    @classmethod
    def advice_on(cls, episode: Episode) -> str:
        """By their error codes."""
        return by_code(episode)
