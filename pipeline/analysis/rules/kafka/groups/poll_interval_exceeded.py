"""Rule ``poll_interval_exceeded``: a client leaves its group in the middle of its work and comes back later.

What it rests on: :mod:`pipeline.analysis.rules.kafka.groups.poll_limits`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipeline.analysis.claims.kafka.members import POLL_INTERVAL_EXCEEDED
from pipeline.analysis.libraries import WHEN_REVOKED
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED
from pipeline.analysis.rules.format import times, who
from pipeline.analysis.rules.kafka.groups.poll_limits import Held, Left, bouts, exceeded, is_over
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.humanize import clock, pluralize, seconds, some

ADVICE = (
    "Now: find out what {who} waits for (a database, a lock, a service downstream) and restart it if it hangs; the "
    "members that have its partitions now process its records a second time. Fix: fewer records between two polls "
    "by max.poll.records (librdkafka: smaller batches of consume()), or a max.poll.interval.ms above the longest work; "
    "hand long work to a thread and pause() the partitions while polling on; commit when a partition is revoked "
    f"({WHEN_REVOKED}), not after it."
)


class PollIntervalExceeded(Rule):
    """A client exceeds max.poll.interval.ms between two polls and drops out of its group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        poll_exceeded_times: Count = Field(
            default=1, description="Times that a client leaves its group in the middle of its work"
        )

    name = "poll_interval_exceeded"
    title = "Poll interval exceeded"
    protocol = "kafka"
    about = "membership"
    severities = ("critical", "warning")
    reads = ("exchanges", "events", "batches", "states")
    advice = (ADVICE,)
    urgency = REFUSED
    effects = (
        Link(("rebalance_storm", "slow_rebalance"), (GROUP,), "who is put out comes back, and all join again"),
        Link(
            (*PUT_OUT, "competing_committers", "stuck_commit", "commit_regressed"),
            (GROUP, CLIENT),
            "commits of a removed member are refused or out of date",
        ),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
    claims = POLL_INTERVAL_EXCEEDED

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """One finding for each group and client."""
        return [
            _finding(all_left, sources, settings)
            for all_left in exceeded(sources).values()
            if len(all_left) >= settings.poll_exceeded_times
        ]


def _finding(all_left: Sequence[Left], sources: Sources, settings: PollIntervalExceeded.Thresholds) -> Finding:
    times_apart = bouts(all_left)
    some_left = times_apart[-1]
    last = some_left[-1]
    step = last.step
    first_us, last_us = some_left[0].step.us, max(step.us, last.returned_us or 0)
    refused = [exchange_id for left in some_left for exchange_id in left.refused]
    clients = some(who(left.step.client_id, left.step.host) for left in some_left)
    limit = f" ({seconds(last.limit_us)})" if last.limit_us else ""
    number, state = len(some_left), _state(last, sources)
    evidence = [exchange_id for left in some_left for exchange_id in (left.step.exchange_id, *left.refused)]
    unfinished = [held for held in last.held if held.is_unfinished]
    return Finding(
        rule=PollIntervalExceeded.name, severity="critical" if refused or len(all_left) > 1 else "warning",
        subject=f"{step.group}/{step.client_id or '?'}", state=state, cluster=step.cluster, topic=None,
        partition=None, group_id=step.group, first_us=first_us, last_us=last_us,
        summary=f"{clients} exceeded max.poll.interval.ms{limit} and dropped out of group {step.group} "
        f"{times(number, first_us, step.us)}{_work(unfinished)}.{_after(last, len(refused), state)}",
        advice=ADVICE.format(who=clients), evidence=evidence[-settings.max_evidence :],
        details={
            "times": number, "client_id": step.client_id, "member_id": step.member, "host": step.host,
            "max_poll_interval_ms": last.limit_us // 1000 or None, "reason": step.reason,
            "interval_us": (step.us - first_us) // (number - 1) if number > 1 else None,
            "out_us": None if last.returned_us is None else last.returned_us - step.us, "commits_refused": len(refused),
            "in_hand": [
                {"topic": h.topic, "partition": h.partition, "fetched_from": h.fetched_from, "fetched_to": h.fetched_to,
                 "committed": h.committed, "records": h.records} for h in unfinished
            ],
            **earlier((few[0].step.us, max(few[-1].step.us, few[-1].back_us or 0)) for few in times_apart),
            **({"known_until_us": max(step.us, last.tried_us)} if state == "unknown" else {}),
            "enough_us": some_left[min(settings.poll_exceeded_times, number) - 1].step.us,
        },
    )  # fmt: skip


def _state(last: Left, sources: Sources) -> State:
    end_us = sources.ends.get(last.step.cluster, last.step.us)
    if last.returned_us is not None:
        return "resolved" if is_over(last, end_us) else "ongoing"
    tried_us = max(last.step.us, last.tried_us)
    return "ongoing" if end_us - tried_us <= max(sources.resolved_after_us, 2 * last.limit_us) else "unknown"


def _work(unfinished: Sequence[Held]) -> str:
    """What it was at."""
    if not unfinished:
        return ""
    held = max(unfinished, key=lambda one: (one.fetched_to - (one.committed or one.fetched_from or 0), one.topic))
    begin = held.committed if held.committed is not None else held.fetched_from
    more = f" and {pluralize(len(unfinished) - 1, 'more partition')}" if len(unfinished) > 1 else ""
    return f", at work on offsets {begin} to {held.fetched_to - 1} of {held.topic}-{held.partition}{more}"


def _after(last: Left, refused: int, state: State) -> str:
    if last.returned_us is not None:
        how = "was back" if last.back_us is not None else "was started again"
        back = f" It {how} {seconds(last.returned_us - last.step.us)} later."
    else:
        unknown = " It is unknown whether it hangs on or has ended." if state == "unknown" else ""
        back = f" It is not back since {clock(last.step.us)} UTC.{unknown}"
    return (
        f"{back} {pluralize(refused, 'commit')} of it {'was' if refused == 1 else 'were'} refused meanwhile."
        if refused
        else back
    )
