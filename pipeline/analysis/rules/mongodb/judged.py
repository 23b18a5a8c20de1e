"""Rules ``mongo_slow_command``, ``mongo_command_failed`` and ``mongo_retry_storm``: judged by what is usual.

Evidence: symptoms of single commands, by namespace and command. A command is slow against what the same application
takes for it at other times; failures and repeats count by their share of all that the application sent meanwhile, and
by how many came without a success between them. Less is reported for information: a busy application has some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pipeline.analysis.codes.advice import advice_of, facts_of
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, when
from pipeline.analysis.rules.episode import Episode, Shown
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import APPLICATION, FAILED, REPEATED, RETRIES, SLOW, SUBJECT
from pipeline.analysis.rules.mongodb.elsewhere import CURSOR_NOT_FOUND, ELSEWHERE_ADVICE, opened_elsewhere
from pipeline.analysis.rules.mongodb.mongo_command_failed import MongoCommandFailed
from pipeline.analysis.rules.mongodb.mongo_retry_storm import RETRIES_ADVICE, MongoRetryStorm
from pipeline.analysis.rules.mongodb.mongo_slow_command import MongoSlowCommand
from pipeline.analysis.rules.mongodb.old_servers import old_servers
from pipeline.analysis.rules.mongodb.refused import is_login, refused_login, waits_ms
from pipeline.analysis.rules.mongodb.slow import advice_on
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, first_of, pluralize

Key = tuple[str, str, str]
"""Server, ``namespace/command`` and application."""


class MongoThresholds(MongoSlowCommand.Thresholds, MongoCommandFailed.Thresholds, MongoRetryStorm.Thresholds):
    """Thresholds of rules that share a pass."""


@finds(MongoSlowCommand, MongoCommandFailed, MongoRetryStorm)
def find(sources: Sources, settings: MongoThresholds) -> Iterator[Finding]:
    """Apply the rules."""
    yield from _slow(sources, settings)
    yield from _repeated(sources, settings)
    yield from old_servers(sources, settings)


def _many(sources: Sources, rule: str, least: int) -> list[Episode]:
    return [e for e in sources.episodes.get(rule, ()) if e.times >= least]


def _command(episode: Episode) -> str:
    namespace, _, command = episode.subject.rpartition("/")
    return f"{command} on {namespace}"


def _commands(episode: Episode) -> str:
    namespace, _, command = episode.subject.rpartition("/")
    return f"{command} commands on {namespace}"


def _by_application(episode: Episode) -> dict[Key, list[Shown]]:
    found: defaultdict[Key, list[Shown]] = defaultdict(list)
    for one in episode.each:
        found[one.server, one.subject, one.client_id or "?"].append(one)
    return found


def _spans(tables: Tables, episodes: Sequence[Episode], around_us: int = 0) -> None:
    """Names the times of episodes as ``spans``, by number, each with so much before and behind it."""
    spans = {
        "number": range(len(episodes)), "subject": [e.subject for e in episodes],
        "first_us": [e.first_us - around_us for e in episodes], "last_us": [e.last_us + around_us for e in episodes],
    }  # fmt: skip
    tables.add("spans", pa.table(spans))


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


def _slow(sources: Sources, settings: MongoThresholds) -> Iterator[Finding]:
    """Commands that took far longer than usual; for information where nothing is known of what is usual."""
    many = _many(sources, SLOW, settings.mongo_slow_commands)
    if not many:
        return
    _spans(sources.tables, many)
    known = {(row.server, row.subject, row.application): row for row in sources.tables.rows(_USUAL)}
    found: dict[Episode, _Slow] = {}
    for episode in many:
        slow = _slowness(episode, known, settings)
        if len(slow.unusual) + slow.unknown >= settings.mongo_slow_commands:
            found[episode] = slow
    for last in last_of_each(found):
        yield _slow_finding(last, found[last], sources, settings)


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


def _slowness(episode: Episode, known: Mapping[tuple[str, str, str | None], Row], settings: MongoThresholds) -> _Slow:
    unusual, unknown, longest_us = list[Shown](), 0, 0
    for (server, subject, application), some in _by_application(episode).items():
        rows = (known.get((server, subject, application)), known.get((server, subject, None)))
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


def _slow_finding(episode: Episode, slow: _Slow, sources: Sources, settings: MongoThresholds) -> Finding:
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


_SENT: Final = f"""
    WITH sent AS (
        SELECT spans.number, server, {APPLICATION} AS application, epoch_us(ts) AS us, exchange_id,
            shown.exchange_id IS NOT NULL AS is_shown
        FROM (SELECT *, {SUBJECT} AS subject FROM commands) AS all_sent
        JOIN spans ON spans.subject = all_sent.subject AND epoch_us(ts) BETWEEN spans.first_us AND spans.last_us
        LEFT JOIN shown USING (number, exchange_id)
    ), runs AS (
        SELECT *, sum(CASE WHEN is_shown THEN 0 ELSE 1 END) OVER (
            PARTITION BY number, server, application ORDER BY us, exchange_id
        ) AS run
        FROM sent
    ), counted AS (
        SELECT number, server, application, run, count(*) AS sent, count(*) FILTER (is_shown) AS shown
        FROM runs GROUP BY ALL
    )
    SELECT number, server, application, sum(sent)::BIGINT AS sent, sum(shown)::BIGINT AS shown, max(shown) AS longest
    FROM counted GROUP BY number, server, application HAVING sum(shown) > 0
    ORDER BY number, sum(shown) DESC, server, application
"""
"""By episode and application: how much was sent meanwhile, how much of it failed, and the longest run of failures."""


@dataclass(frozen=True, slots=True)
class _Share:
    """How much of what was sent failed, or was repeated; the worst of applications for the last two.

    Attributes:
        run: the most without a success between them.
    """

    shown: int
    sent: int
    share: float
    run: int

    def is_much(self, settings: MongoThresholds) -> bool:
        """Whether it is more than a busy application has."""
        return self.share >= settings.mongo_failure_share or self.run >= settings.mongo_failure_run

    def __str__(self) -> str:
        return f"{self.shown:,} of {self.sent:,}"


def _repeated(sources: Sources, settings: MongoThresholds) -> Iterator[Finding]:
    """Failures and repeats, with their share."""
    failed = [e for e in sources.episodes.get(FAILED, ()) if e.times >= _least_failures(e, settings)]
    retried = _many(sources, RETRIES, settings.mongo_retries)
    dense = {e for e in retried if e.span_us <= e.times * settings.mongo_retry_interval_seconds * 1_000_000}
    # Who writes seldom repeats seldom: of what drivers send again, the share counts. Conflicts are ordinary there.
    sent_again = [_sent_again(e) for e in retried if e not in dense and REPEATED in e.names]
    seldom = [e for e in retried if e not in dense and REPEATED not in e.names]
    sent_again = [e for e in sent_again if e.times >= settings.mongo_retries]
    retried = [*(e for e in retried if e in dense), *sent_again, *seldom]
    shares = _shares(sources.tables, [*failed, *retried], int(settings.episode_pause_seconds * 1_000_000))
    repeated = [
        e
        for e in retried
        if e in dense
        or (
            e in shares
            and (shares[e].is_much(settings) if e in sent_again else shares[e].run >= settings.mongo_retries)
        )
    ]
    elsewhere = opened_elsewhere(sources.tables, failed)
    of_share = list(_of_share(failed, shares, settings))
    waits = waits_ms([episode for episode, _, _ in of_share], sources.tables)
    for episode, share, severity in of_share:
        opened_at, asked_ms = elsewhere.get(episode, ()), waits.get(episode)
        yield _failed_finding(episode, share, severity, opened_at, asked_ms, sources, settings)
    for episode, share, severity in _of_share(repeated, shares, settings):
        advice = RETRIES_ADVICE if REPEATED in episode.names else advice_of(_codes(episode))
        summary = _failed_words(episode, share) if share.run == share.sent else _repeated_words(episode, share)
        yield _counted(finding(episode, severity, summary, advice, sources, settings.mongo_retries), share)


def _least_failures(episode: Episode, settings: MongoThresholds) -> int:
    """Who is refused may not come back: one failed login is enough."""
    return settings.auth_failed_times if is_login(episode) else settings.mongo_failures


def _sent_again(episode: Episode) -> Episode:
    """What drivers sent again, alone."""
    each = tuple(one for one in episode.each if one.what == REPEATED)
    few = each[: len(episode.evidence)]
    return replace(
        episode, each=each, times=len(each), first_us=each[0].us, last_us=each[-1].us, kinds=1, names=(REPEATED,),
        evidence=tuple(one.exchange_id for one in few), times_us=tuple(one.us for one in few),
    )  # fmt: skip


def _shares(tables: Tables, episodes: Sequence[Episode], around_us: int) -> dict[Episode, _Share]:
    """Their shares, also of what was sent so shortly before and after, µs: three in a row alone are no share."""
    if not episodes:
        return {}
    _spans(tables, episodes, around_us)
    # A command may be shown twice, as of an error and as of a repeat: joined, it must stay one.
    shown = sorted({(number, one.exchange_id) for number, e in enumerate(episodes) for one in e.each})
    tables.add("shown", pa.table({"number": [n for n, _ in shown], "exchange_id": [text for _, text in shown]}))
    of: defaultdict[int, list[Row]] = defaultdict(list)
    for row in tables.rows(_SENT):
        of[row.number].append(row)
    return {
        episodes[number]: _Share(
            sum(row.shown for row in rows), sum(row.sent for row in rows), max(row.shown / row.sent for row in rows),
            max(row.longest for row in rows),
        )
        for number, rows in of.items()
    }  # fmt: skip


def _of_share(
    many: Sequence[Episode], shares: Mapping[Episode, _Share], settings: MongoThresholds
) -> Iterator[tuple[Episode, _Share, str]]:
    """The last episode of each subject, with its share and the severity that follows from it."""
    much = [e for e in many if e in shares and shares[e].is_much(settings)]
    dated = {(e.cluster, e.subject) for e in much}
    little = [e for e in many if e in shares and (e.cluster, e.subject) not in dated]
    for severity, some in (("warning", much), ("info", little)):
        for last in last_of_each(some):
            yield last, shares[last], severity


def _counted(made: Finding, share: _Share, **more: object) -> Finding:
    counts = {"failed": share.shown, "sent": share.sent, "share": round(share.share, 4), "run": share.run}
    return replace(made, details={**made.details, **counts, **more})


def _codes(episode: Episode) -> tuple[CodeFacts, ...]:
    """The facts of its errors, the most frequent first."""
    _, _, command = episode.subject.rpartition("/")
    often = Counter(one.what for one in episode.each).most_common()
    return tuple(one.filled() for one in facts_of("mongodb", ((command, name) for name, _ in often)))


def _failed_finding(
    episode: Episode, share: _Share, severity: str, opened_at: Sequence[str], asked_ms: int | None, sources: Sources,
    settings: MongoThresholds,
) -> Finding:  # fmt: skip
    """Failures of one command.

    Args:
        episode, share, severity: of them.
        opened_at: the servers that have the cursors that were not found; this episode's own where other connections to
            its address opened them.
        asked_ms: how long the server asks to wait before a repeat, ms; None: it does not say.
        sources, settings: see rules.
    """
    codes = _codes(episode)
    summary, advice = _failed_words(episode, share), advice_of(codes)
    more: dict[str, object] = {"area": codes[0].area} if codes and codes[0].area in ("login", "too old") else {}
    if is_login(episode):
        summary = refused_login(episode)
    elif codes and codes[0].area == "rate limit":
        more = {"area": codes[0].area, "retry_after_ms": asked_ms}
        summary = summary[:-1] + (f" (RetryAfterMs up to {asked_ms:,})." if asked_ms else ".")
    if opened_at and codes[0].name == CURSOR_NOT_FOUND:
        if set(opened_at) <= set(episode.servers):
            summary += (
                f" Other connections to {first_of(opened_at)} opened these cursors less than 10 minutes before, and "
                "are served on: likely more than one server has this address."
            )
        else:
            summary += f" These cursors were opened at {first_of(opened_at)}."
        advice = ELSEWHERE_ADVICE.format(servers=first_of(sorted({*opened_at, *episode.servers})))
    made = finding(episode, severity, summary, advice, sources, _least_failures(episode, settings))
    errors = [one.name for one in codes]
    return _counted(made, share, errors=errors, **more, **({"opened_at": list(opened_at)} if opened_at else {}))


def _failed_words(episode: Episode, share: _Share) -> str:
    return f"{share} {_commands(episode)} of {clients(episode)} failed, {when(episode)}: {names(episode)}."


def _repeated_words(episode: Episode, share: _Share) -> str:
    return f"{clients(episode)} had to repeat {share} {_commands(episode)}, {when(episode)} ({names(episode)})."
