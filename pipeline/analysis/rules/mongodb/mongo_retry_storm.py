"""Rule ``mongo_retry_storm``: clients repeat writes all the time.

Evidence: symptoms of single commands, by namespace and command, and their share of what was sent
(:mod:`pipeline.analysis.rules.mongodb.failure_rates`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from pipeline.analysis.claims.mongodb import MONGO_RETRY_STORM
from pipeline.analysis.codes.advice import BY_CODE, advice_of
from pipeline.analysis.rules.case.case import begun
from pipeline.analysis.rules.case.entities import NAMESPACE
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, advised, own_clients
from pipeline.analysis.rules.counted import clients, finding, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.command_texts import command, share
from pipeline.analysis.rules.mongodb.commands import REPEATED
from pipeline.analysis.rules.mongodb.failure_rates import Share as ShareOfSent
from pipeline.analysis.rules.mongodb.failure_rates import (
    codes_of,
    commands_of,
    counted,
    failed_words,
    judged,
    many_of,
    shares_of,
)
from pipeline.analysis.rules.mongodb.thresholds import MONGO_FAILURE_RUN, MONGO_FAILURE_SHARE
from pipeline.analysis.rules.rule import OF_NAMESPACE, Counting, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds, Share

RETRIES_ADVICE = (
    "Now: look whether there is a primary (`rs.status()`) and whether connections are cut. Fix: remove "
    "the cause: an election that does not end, connections that are cut, or documents that many transactions change at "
    "once. Drivers repeat a write once after a network error or a change of primary (retryWrites), and applications "
    "repeat a transaction after a conflict; this many repeats mean that the cause persists."
)


class MongoRetryStorm(Rule):
    """Clients of MongoDB repeat writes all the time."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_retries: Count = Field(default=5, description="Writes of one command and namespace that were repeated")
        mongo_retry_interval_seconds: Seconds = Field(
            default=10.0, description="At most so long from one to the next, on average"
        )
        mongo_failure_share: Share = MONGO_FAILURE_SHARE
        mongo_failure_run: Count = MONGO_FAILURE_RUN

    name = "mongo_retry_storm"
    title = "MongoDB retry storm"
    protocol = "mongodb"
    severities = ("warning", "info")
    reads = ("commands",)
    advice = (RETRIES_ADVICE, BY_CODE)
    urgency = SLOW
    texts = Texts(
        headline=lambda case: f"{case.who} repeats {command(case)}, {share(case)} ({case.kinds})",
        now=lambda case: begun(advised(case, "now")),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=f"{SEEN}the same write with the same transaction number, or errors that ask for a repeat.",
        affected=own_clients,
    )
    gathered = OF_NAMESPACE
    subject = (NAMESPACE, None)
    counting = Counting(is_refused=True, keeps_each=True)
    claims = MONGO_RETRY_STORM

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Repeats with their share of what was sent."""
        retried = many_of(sources, cls.name, settings.mongo_retries)
        dense = {e for e in retried if e.span_us <= e.times * settings.mongo_retry_interval_seconds * 1_000_000}
        # Who writes seldom repeats seldom: of what drivers send again, the share counts. Conflicts are ordinary there.
        sent_again = [_sent_again(e) for e in retried if e not in dense and REPEATED in e.names]
        seldom = [e for e in retried if e not in dense and REPEATED not in e.names]
        sent_again = [e for e in sent_again if e.times >= settings.mongo_retries]
        retried = [*(e for e in retried if e in dense), *sent_again, *seldom]
        shares = shares_of(sources.tables, retried, int(settings.episode_pause_seconds * 1_000_000))

        def is_reported(episode: Episode) -> bool:
            if episode in dense or episode not in shares:
                return episode in dense
            of_it = shares[episode]
            return of_it.is_much(settings) if episode in sent_again else of_it.run >= settings.mongo_retries

        for episode, of_it, severity in judged([e for e in retried if is_reported(e)], shares, settings):
            advice = RETRIES_ADVICE if REPEATED in episode.names else advice_of(codes_of(episode))
            summary = failed_words(episode, of_it) if of_it.run == of_it.sent else _repeated_words(episode, of_it)
            yield counted(finding(episode, severity, summary, advice, sources, settings.mongo_retries), of_it)


def _sent_again(episode: Episode) -> Episode:
    """What drivers sent again, alone."""
    each = tuple(one for one in episode.each if one.what == REPEATED)
    few = each[: len(episode.evidence)]
    return replace(
        episode, each=each, times=len(each), first_us=each[0].us, last_us=each[-1].us, kinds=1, names=(REPEATED,),
        evidence=tuple(one.exchange_id for one in few), times_us=tuple(one.us for one in few),
    )  # fmt: skip


def _repeated_words(episode: Episode, share: ShareOfSent) -> str:
    return f"{clients(episode)} had to repeat {share} {commands_of(episode)}, {when(episode)} ({names(episode)})."
