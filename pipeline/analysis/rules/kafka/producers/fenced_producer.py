"""Rule ``fenced_producer``: a producer was fenced off its transactional id.

Evidence: PRODUCER_FENCED and INVALID_PRODUCER_EPOCH, and who got a producer id for the same transactional id before
and after (InitProducerId). That a newer instance takes the id over is how Kafka keeps the older one from writing: it
is trouble where both continue, or where no other took it and the coordinator alone has aborted a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from pipeline.analysis.claims.kafka.producers import FENCED_PRODUCER
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, TRANSACTION
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, own_clients
from pipeline.analysis.rules.counted import clients, finding, last_of_each, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.kafka.symptoms import INTRODUCED
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Counting, Link, Rule
from pipeline.analysis.rules.thresholds import RESOLVED_AFTER_SECONDS, RuleThresholds, Seconds
from pipeline.analysis.tables import Tables
from pipeline.humanize import clock, listed, seconds, some

_SHARED = (
    "Now: stop one of the two processes, and close the fenced producer; its open transaction was aborted. Fix: two "
    "producers share one transactional.id: give each its own (in Kafka Streams and Connect that follows from "
    "application.id and task), or see that the old process ends before the new one starts."
)
_TAKEN_OVER = (
    "Now: nothing, if a newer instance was to take its place: the transaction that the old one had open was aborted, "
    "and the newer one does that work again. Fix: let the old process end before the new one starts, so that nothing "
    "is aborted; if both were to run, give each a transactional.id of its own."
)
_ABORTED = (
    "Now: restart the producer if it does not write again: its open transaction was aborted. Fix: no other was "
    "seen to take the id, so the coordinator has probably aborted a transaction that was open for longer than "
    "transaction.timeout.ms: commit more often, or raise it (up to the brokers' transaction.max.timeout.ms). If "
    "another process uses the id unseen, give each its own."
)


def _taken_by(case: Case) -> str:
    return listed(one for one in case.details.get("taken_by", ()) if isinstance(one, str)) or "another"


def _fenced(case: Case) -> str:
    name = case.lead.row["subject"]
    if not case.details.get("shared"):
        return f"The coordinator aborted transaction {name} of {case.who}; no other producer was seen to take the id"
    if case.details.get("course") == "by turns":
        return f"{_taken_by(case)} take transactional id {name} from each other: each aborts what the other writes"
    going_on = "writes on" if case.details.get("course") == "writes on" else "is still there"
    return f"{case.who} was fenced off transactional id {name} by {_taken_by(case)}, and {going_on}"


def _fenced_now(case: Case) -> str:
    if case.details.get("shared"):
        return f"End {case.clients} if a newer instance does its work; if both are wanted, give one another id."
    return f"Restart {case.clients} if it does not write again. What was in that transaction is not written."


def _fenced_fix(case: Case) -> str:
    if case.details.get("shared"):
        return (
            "One transactional.id per running instance; in Streams and Connect it follows from application.id and "
            "task. Wait for the old process to end before a deployment starts the new one."
        )
    return (
        "Commit more often than each transaction.timeout.ms, or raise it (up to the brokers' "
        "transaction.max.timeout.ms); look what kept the producer for so long."
    )


def _fenced_sure(case: Case) -> str:
    if case.details.get("shared"):
        return f"{SEEN}the broker's answer, and who took the id."
    return f"{SEEN}the broker's answer; a rival that was not captured would look the same."


class FencedProducer(Rule):
    """A producer was fenced off its transactional id."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        resolved_after_seconds: Seconds = RESOLVED_AFTER_SECONDS

    name = "fenced_producer"
    title = "Producer fenced"
    protocol = "kafka"
    about = "producers"
    severities = ("critical", "warning", "info")
    advice = (_SHARED, _TAKEN_OVER, _ABORTED)
    urgency = LOSES
    texts = Texts(
        headline=_fenced,
        now=_fenced_now,
        fix=_fenced_fix,
        reasoning=_fenced_sure,
        affected=own_clients,
    )
    subject = (TRANSACTION,)
    counting = Counting(keeps_each=True)
    effects = (Link(("produce_refused", "sequence_gap"), (CLIENT,), "a fenced producer may not write"),)
    claims = FENCED_PRODUCER

    @classmethod
    def detect(cls, sources: Sources, _settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: of each transactional id the last time."""
        fenced = last_of_each(sources.episodes.get(cls.name, []))
        if not fenced:
            return
        introductions = sources.by_subject(INTRODUCED)
        introduced = [introductions.get((one.cluster, one.subject), ()) for one in fenced]
        ends = _ends(sources.tables, [*fenced, *chain.from_iterable(introduced)])
        for episode, inits in zip(fenced, introduced, strict=True):
            taken, refused = _uses(inits, ends), _uses([episode], ends)
            course = _course(episode, refused, taken, sources.resolved_after_us)
            yield _finding(episode, inits, course, sources)


BY_TURNS, WRITES_ON, LINGERS, TAKEN_OVER, ABORTED = "by turns", "writes on", "lingers", "taken over", "aborted"
"""How it went, as ``details`` say it: the first four of an id that two share, the last where no other took it."""
_AT_ONCE_US = 5_000_000
"""What was under way to several brokers is refused at once."""
_RECOVERS_US = 60_000_000
"""Within so long a client that was refused takes its id again."""
_RETURNS = 2
"""So often may no one come back to an id after another; once is a deploy that is taken back."""

Name = tuple[str | None, str]
"""Client id and host."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A request with a transactional id. Times are µs since the epoch.

    Attributes:
        last_us: of the connection's last request.
    """

    name: Name
    connection_id: str
    us: int
    last_us: int
    exchange_id: str


@dataclass(frozen=True, slots=True)
class _Course:
    """How it went.

    Attributes:
        taken_by: who has the id from the one that was fenced; none: no other was seen to take it.
        healed_us: when somebody got the id that no other had taken; None: not seen, or it was taken.
        stays_us: how long the fenced one was there after it.
        proof: the exchange by which the id was taken last before the last refusal, if any was.
    """

    what: str
    taken_by: tuple[str, ...]
    healed_us: int | None
    stays_us: int
    proof: tuple[str, ...] = ()


def _ends(tables: Tables, episodes: Iterable[Episode]) -> dict[str, int]:
    """By connection of what was shown the time of its last request, µs since the epoch."""
    rows = tables.rows(
        """
        SELECT connection_id, max(epoch_us(ts)) AS last_us FROM exchanges
        WHERE connection_id IN (SELECT unnest($ids)) GROUP BY connection_id
        """,
        ids=sorted({one.connection_id for e in episodes for one in e.each}),
    )
    return {row.connection_id: row.last_us for row in rows}


def _uses(episodes: Iterable[Episode], ends: Mapping[str, int]) -> list[_Use]:
    """In order of time, each exchange once, however many errors its answer has."""
    shown = {one.exchange_id: one for e in episodes for one in e.each}
    uses = (
        _Use((one.client_id, one.client_ip), one.connection_id, one.us, ends.get(one.connection_id, one.us), name)
        for name, one in shown.items()
    )
    return sorted(uses, key=lambda one: (one.us, one.exchange_id))


def _course(episode: Episode, refused: Sequence[_Use], taken: Sequence[_Use], long_us: int) -> _Course:
    """How it went.

    Args:
        episode: of the refusals.
        refused, taken: in order of time.
        long_us: how long a fenced client may take to end.
    """
    own = {one.name for one in refused}
    before = [one for one in taken if one.us <= episode.last_us]
    rivals, proof = _rivals(episode, before, own), tuple(one.exchange_id for one in before[-1:])
    after = next((one for one in taken if one.us > episode.last_us), None)
    stays_us = max((one.last_us - episode.last_us for one in refused), default=0)
    if not rivals:
        return _Course(ABORTED, (), None if after is None else after.us, stays_us)
    goes_on = any(_goes_on([one.us for one in refused if one.name == name]) for name in own)
    if _returns(taken) >= _RETURNS or (goes_on and _returns(taken)):
        return _Course(BY_TURNS, _names(taken), None, stays_us, proof)
    what = WRITES_ON if goes_on else LINGERS if stays_us >= long_us else TAKEN_OVER
    return _Course(what, rivals, None, stays_us, proof)


def _rivals(episode: Episode, before: Sequence[_Use], own: set[Name]) -> tuple[str, ...]:
    """Who took the id from those who were refused: others, or the same name by another process.

    Args:
        episode: of the refusals.
        before: who took the id until then.
        own: who was refused.
    """
    if not before:
        return ()
    last = before[-1]
    if last.name not in own:
        return _names([last])
    if len(own) > 1:
        return _names([one for one in before if one.name in own])
    if any(0 <= last.us - until_us <= _RECOVERS_US for _, until_us in episode.before):
        return ()  # it started over after it was refused before
    run = list(takewhile(lambda one: one.name == last.name, reversed(before)))
    return _names([last]) if len({one.connection_id for one in run}) > 1 else ()


def _names(some_of: Sequence[_Use]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(who(*one.name) for one in some_of))


def _returns(taken: Sequence[_Use]) -> int:
    """How often somebody took the id who had it before another."""
    seen: set[Name] = set()
    last, count = None, 0
    for one in taken:
        count += one.name != last and one.name in seen
        seen.add(one.name)
        last = one.name
    return count


def _goes_on(times_us: Sequence[int]) -> bool:
    return times_us[-1] - times_us[0] >= _AT_ONCE_US


def _finding(episode: Episode, inits: Sequence[Episode], course: _Course, sources: Sources) -> Finding:
    is_shared = course.what != ABORTED
    begin = f"{clients(episode)} was fenced off transactional id {episode.subject} {when(episode)} ({names(episode)}): "
    rival = some(course.taken_by)
    ends = {
        BY_TURNS: f"{rival} take the id from each other, and each aborts what the other has open.",
        WRITES_ON: f"{rival} has taken the id, and it writes on all the same.",
        LINGERS: f"{rival} has taken the id; it was still there {seconds(course.stays_us)} later.",
        TAKEN_OVER: f"{rival} has taken the id over, and it was not refused again.",
        ABORTED: "no other producer was seen to take the id, so the coordinator has aborted its transaction.",
    }
    again = "" if course.healed_us is None else f" The id was taken again at {clock(course.healed_us)} UTC."
    severity = {BY_TURNS: "critical", WRITES_ON: "critical", LINGERS: "warning", TAKEN_OVER: "info"}.get(
        course.what, "critical" if course.healed_us is None else "warning"
    )
    advice = _ABORTED if not is_shared else _TAKEN_OVER if course.what == TAKEN_OVER else _SHARED
    summary = begin + ends[course.what] + again
    made = finding(replace(episode, healed_us=course.healed_us), severity, summary, advice, sources)
    details = {**made.details, "shared": is_shared, "taken_by": list(course.taken_by), "course": course.what}
    evidence = dict.fromkeys((*made.evidence, *(one for e in inits for one in e.evidence), *course.proof))
    return replace(made, evidence=tuple(evidence), details=details)
