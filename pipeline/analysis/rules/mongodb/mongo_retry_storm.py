"""Rule ``mongo_retry_storm``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import begun
from pipeline.analysis.rules.case.entities import NAMESPACE
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, advised, own_clients
from pipeline.analysis.rules.mongodb.command_texts import command, share
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
