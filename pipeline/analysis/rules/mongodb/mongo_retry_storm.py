"""Rule ``mongo_retry_storm``."""

from __future__ import annotations

from pipeline.analysis.codes.advice import BY_CODE
from pipeline.analysis.rules.case.case import begun
from pipeline.analysis.rules.case.entities import NAMESPACE
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, advised, own_clients
from pipeline.analysis.rules.mongodb.command_texts import command, share
from pipeline.analysis.rules.rule import OF_NAMESPACE, Counting, Rule

RETRIES_ADVICE = (
    "Now: look whether there is a primary (`rs.status()`) and whether connections are cut. Fix: remove "
    "the cause: an election that does not end, connections that are cut, or documents that many transactions change at "
    "once. Drivers repeat a write once after a network error or a change of primary (retryWrites), and applications "
    "repeat a transaction after a conflict; this many repeats mean that the cause persists."
)


class MongoRetryStorm(Rule):
    """Clients of MongoDB repeat writes all the time."""

    name = "mongo_retry_storm"
    title = "MongoDB retry storm"
    protocol = "mongodb"
    severities = ("warning", "info")
    thresholds = ("mongo_retries", "mongo_retry_interval_seconds", "mongo_failure_share", "mongo_failure_run")
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
