"""How much of what applications sent to MongoDB failed or was repeated, and whether that is more than usual.

Failures and repeats count by their share of all that the application sent meanwhile, and by how many came without a
success between them. Less is reported for information: a busy application has some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pyarrow as pa

from pipeline.analysis.codes.advice import facts_of
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.counted import clients, last_of_each, names, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import APPLICATION, SUBJECT
from pipeline.analysis.tables import Row, Tables


class ShareThresholds(Protocol):
    """What more than usual is, of failures and of repeats."""

    mongo_failure_share: float
    mongo_failure_run: int


def many_of(sources: Sources, rule: str, least: int) -> list[Episode]:
    """Episodes of a rule with this many symptoms."""
    return [e for e in sources.episodes.get(rule, ()) if e.times >= least]


def commands_of(episode: Episode) -> str:
    """Its commands and their namespace, for people."""
    namespace, _, command = episode.subject.rpartition("/")
    return f"{command} commands on {namespace}"


def add_spans(tables: Tables, episodes: Sequence[Episode], around_us: int = 0) -> None:
    """Names the times of episodes as ``spans``, by number, each with so much before and behind it."""
    spans = {
        "number": range(len(episodes)), "subject": [e.subject for e in episodes],
        "first_us": [e.first_us - around_us for e in episodes], "last_us": [e.last_us + around_us for e in episodes],
    }  # fmt: skip
    tables.add("spans", pa.table(spans))


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
class Share:
    """How much of what was sent failed, or was repeated; the worst of applications for the last two.

    Attributes:
        run: the most without a success between them.
    """

    shown: int
    sent: int
    share: float
    run: int

    def is_much(self, settings: ShareThresholds) -> bool:
        """Whether it is more than a busy application has."""
        return self.share >= settings.mongo_failure_share or self.run >= settings.mongo_failure_run

    def __str__(self) -> str:
        return f"{self.shown:,} of {self.sent:,}"


def shares_of(tables: Tables, episodes: Sequence[Episode], around_us: int) -> dict[Episode, Share]:
    """Their shares, also of what was sent so shortly before and after, µs: three in a row alone are no share."""
    if not episodes:
        return {}
    add_spans(tables, episodes, around_us)
    # A command may be shown twice, as of an error and as of a repeat: joined, it must stay one.
    shown = sorted({(number, one.exchange_id) for number, e in enumerate(episodes) for one in e.each})
    tables.add("shown", pa.table({"number": [n for n, _ in shown], "exchange_id": [text for _, text in shown]}))
    of: defaultdict[int, list[Row]] = defaultdict(list)
    for row in tables.rows(_SENT):
        of[row.number].append(row)
    return {
        episodes[number]: Share(
            sum(row.shown for row in rows), sum(row.sent for row in rows), max(row.shown / row.sent for row in rows),
            max(row.longest for row in rows),
        )
        for number, rows in of.items()
    }  # fmt: skip


def judged(
    many: Sequence[Episode], shares: Mapping[Episode, Share], settings: ShareThresholds
) -> Iterator[tuple[Episode, Share, str]]:
    """The last episode of each subject, with its share and the severity that follows from it."""
    much = [e for e in many if e in shares and shares[e].is_much(settings)]
    dated = {(e.cluster, e.subject) for e in much}
    little = [e for e in many if e in shares and (e.cluster, e.subject) not in dated]
    for severity, some in (("warning", much), ("info", little)):
        for last in last_of_each(some):
            yield last, shares[last], severity


def counted(made: Finding, share: Share, **more: object) -> Finding:
    """A finding with the figures of its share."""
    counts = {"failed": share.shown, "sent": share.sent, "share": round(share.share, 4), "run": share.run}
    return replace(made, details={**made.details, **counts, **more})


def codes_of(episode: Episode) -> tuple[CodeFacts, ...]:
    """The facts of its errors, the most frequent first."""
    _, _, command = episode.subject.rpartition("/")
    often = Counter(one.what for one in episode.each).most_common()
    return tuple(one.filled() for one in facts_of("mongodb", ((command, name) for name, _ in often)))


def failed_words(episode: Episode, share: Share) -> str:
    """How much failed, whose and when, for people."""
    return f"{share} {commands_of(episode)} of {clients(episode)} failed, {when(episode)}: {names(episode)}."
