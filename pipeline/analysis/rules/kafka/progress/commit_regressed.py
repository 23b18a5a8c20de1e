"""Rule ``commit_regressed``."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import COMMIT_REGRESSED
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import begun_advice
from pipeline.analysis.rules.rule import Rule
from pipeline.humanize import pluralize


def _regressed(case: Case) -> str:
    before, after = case.details.get("before"), case.details.get("after")
    falls = sum(int(one.details.get("falls") or 1) for one in case.bundle.findings)
    how_far = "" if before is None or after is None else f", at most from {before} to {after}"
    return f"{case.who} sets group {case.group} back on {case.places}, {pluralize(falls, 'time')}{how_far}"


class CommitRegressed(Rule):
    """The broker accepted a commit that is older than the one before it."""

    name = track.COMMIT_REGRESSED
    title = "Commit went back"
    protocol = "kafka"
    about = "commits"
    severities = ("warning", "info")
    reads = ("timeline", "exchanges")
    found_by = (lagging.find,)
    advice = texts.ADVICE[track.COMMIT_REGRESSED]
    urgency = LOSES
    texts = Texts(
        headline=_regressed,
        now=lambda case: begun_advice(case, "now"),
        fix=lambda case: begun_advice(case, "fix"),
        reasoning=f"{SEEN}the broker accepted each of these commits.",
    )
    records_come_again = True
    claims = COMMIT_REGRESSED
