"""Rule ``mongo_slow_command``: a MongoDB server takes far longer for a command than usual.

Evidence: symptoms of single commands, by namespace and command. A command is slow against what the same application
takes for it at other times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from pipeline.analysis.claims.mongodb import MONGO_SLOW_COMMAND
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, NAMESPACE
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, never, not_why, own_clients, part_of, server
from pipeline.analysis.rules.counted import clients, finding, last_of_each
from pipeline.analysis.rules.episode import Episode, Shown
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import APPLICATION, SUBJECT
from pipeline.analysis.rules.mongodb.failure_rates import add_spans, many_of
from pipeline.analysis.rules.mongodb.slow import QUERY_ADVICE, SERVER_ADVICE, advice_on
from pipeline.analysis.rules.rule import OF_SERVER, Counting, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds, Seconds
from pipeline.analysis.tables import Row
from pipeline.humanize import clock, listed, pluralize


def _slow_commands(case: Case) -> list[str]:
    """Slow commands with their namespaces, the slowest first."""
    slowest = sorted(case.bundle.findings, key=lambda one: -float(one.details.get("peak") or 0))
    named = (str(one.row["subject"]).rpartition("/") for one in slowest)
    return list(dict.fromkeys(f"{command} on {namespace}" for namespace, _, command in named))


def _headline(case: Case) -> str:
    peak = max(float(one.details.get("peak") or 0) for one in case.bundle.findings) / 1_000_000
    waits = "waits" if len(case.callers) <= 1 else "wait"
    return f"{server(case)} takes up to {peak:.1f} s for {listed(_slow_commands(case))}: {case.who} {waits}"


def _slow_part(case: Case, part: str) -> str:
    commands = (str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings)
    return begun(part_of(advice_on(commands), part))


class MongoSlowCommand(Rule):
    """A MongoDB server took far longer than usual for a command, several times."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        mongo_slow_seconds: Seconds = Field(
            default=0.5, description="Latency of a MongoDB command that does not wait by design"
        )
        mongo_slow_commands: Count = Field(default=3, description="Slow ones of one command and namespace")
        mongo_slow_ratio: Ratio = Field(
            default=5.0,
            description="Times the usual of the same application and command that each must take: the 95th percentile "
            "at other times, or the 75th of all where too few commands were seen outside the slow times",
        )
        mongo_slow_samples: Count = Field(
            default=5, description="Commands of an application from which its usual latency follows; else those of all"
        )

    name = "mongo_slow_command"
    title = "Slow MongoDB command"
    protocol = "mongodb"
    severities = ("warning", "info")
    reads = ("commands",)
    advice = (QUERY_ADVICE, SERVER_ADVICE)
    urgency = SLOW
    shown_by = ShownBy(grows="latency")
    texts = Texts(
        headline=_headline,
        now=lambda case: _slow_part(case, "now"),
        fix=lambda case: _slow_part(case, "fix"),
        reasoning=f"{SEEN}the time between command and reply. {not_why('server')}",
        source=lambda case: listed(_slow_commands(case)),
        affected=own_clients,
        is_cause=never,
    )
    gathered = OF_SERVER
    subject = (NAMESPACE, None)
    counting = Counting(keeps_each=True)
    effects = (Link(("mongo_retry_storm",), (CLIENT, NAMESPACE), "what comes too late is asked again"),)
    claims = MONGO_SLOW_COMMAND

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Commands that took far longer than usual; for information where nothing is known of what is usual."""
        many = many_of(sources, cls.name, settings.mongo_slow_commands)
        if not many:
            return
        add_spans(sources.tables, many)
        known = {(row.server, row.subject, row.application): row for row in sources.tables.rows(_USUAL)}
        found: dict[Episode, _Slow] = {}
        for episode in many:
            slow = _slowness(episode, known, settings)
            if len(slow.unusual) + slow.unknown >= settings.mongo_slow_commands:
                found[episode] = slow
        for last in last_of_each(found):
            yield _slow_finding(last, found[last], sources, settings)


Key = tuple[str, str, str]
"""Server, ``namespace/command`` and application."""


def _by_application(episode: Episode) -> dict[Key, list[Shown]]:
    found: defaultdict[Key, list[Shown]] = defaultdict(list)
    for one in episode.each:
        found[one.server, one.subject, one.client_id or "?"].append(one)
    return found


_USUAL: Final = f"""
    WITH sent AS (
        SELECT server, {SUBJECT} AS subject, {APPLICATION} AS application, epoch_us(ts) AS us, latency_us
        FROM commands WHERE latency_us IS NOT NULL AND NOT coalesce(is_awaiting, false)
    ), begun AS (
        SELECT subject, first_us, max(last_us) OVER (PARTITION BY subject ORDER BY first_us) AS last_us FROM spans
    ), placed AS (
        SELECT sent.*, coalesce(sent.us > begun.last_us, true) AS outside
        FROM (FROM sent SEMI JOIN spans USING (subject)) AS sent
            ASOF LEFT JOIN begun ON begun.subject = sent.subject AND sent.us >= begun.first_us
    )
    SELECT server, subject, application, count(*) AS commands, count(*) FILTER (outside) AS others,
        quantile_disc(latency_us, 0.75) AS usual, quantile_disc(latency_us, 0.95) FILTER (outside) AS other
    FROM placed GROUP BY GROUPING SETS ((server, subject, application), (server, subject))
"""
"""How long commands usually take, µs, by application and of all of them (application: null).

Where all of it lies within episodes, as of a report that always takes seconds, up to a quarter may be out of the usual.
"""


def _command(episode: Episode) -> str:
    namespace, _, command = episode.subject.rpartition("/")
    return f"{command} on {namespace}"


@dataclass(frozen=True, slots=True)
class _Slow:
    """Slow commands of an episode.

    Attributes:
        unusual: those that took far longer than usual.
        unknown: how many there are of whose usual time too little was seen.
        usual_us: the longest of the usual times that they are judged by, µs.
    """

    unusual: Sequence[Shown]
    unknown: int
    usual_us: int


def _slowness(
    episode: Episode, known: Mapping[tuple[str, str, str | None], Row], settings: MongoSlowCommand.Thresholds
) -> _Slow:
    unusual, unknown, longest_us = list[Shown](), 0, 0
    for (of_server, subject, application), some in _by_application(episode).items():
        rows = (known.get((of_server, subject, application)), known.get((of_server, subject, None)))
        usual_us = next((us for row in rows if (us := _usual_us(row, settings.mongo_slow_samples)) is not None), None)
        if usual_us is None:
            unknown += len(some)
            continue
        more = [one for one in some if one.value >= settings.mongo_slow_ratio * usual_us]
        unusual += more
        longest_us = max(longest_us, usual_us) if more else longest_us
    return _Slow(unusual, unknown, longest_us)


def _usual_us(row: Row | None, enough: int) -> int | None:
    """What was usual at other times, if enough was seen of them; else at all times; None: too little was seen."""
    if row is None or row.commands < enough:
        return None
    return int(row.other if row.others >= enough else row.usual)


def _slow_finding(episode: Episode, slow: _Slow, sources: Sources, settings: MongoSlowCommand.Thresholds) -> Finding:
    is_unusual = len(slow.unusual) >= settings.mongo_slow_commands
    usual = (
        f"usually below {max(slow.usual_us, 1000) / 1000:.0f} ms"
        if is_unusual
        else "and how long it usually takes is not known"
    )
    number = len(slow.unusual) if is_unusual else len(slow.unusual) + slow.unknown
    summary = (
        f"{episode.server} took up to {episode.peak / 1_000_000:.1f} s for {_command(episode)}, {usual}: "
        f"{pluralize(number, 'slow command')} of {clients(episode)}, from {clock(episode.first_us)} to "
        f"{clock(episode.last_us)} UTC."
    )
    severity = "warning" if is_unusual else "info"
    advice = advice_on([episode.subject.rpartition("/")[2]])
    made = finding(episode, severity, summary, advice, sources, settings.mongo_slow_commands)
    return replace(made, details={**made.details, "usual_us": slow.usual_us if is_unusual else None})
