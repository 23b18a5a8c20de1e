"""Rule ``latency_outlier``: a broker takes far longer than usual to answer what does not wait by design.

Evidence: the service time, by api and broker, against what that broker usually takes for that api. A broker answers the
requests of one connection one after the other, so that a request behind a long poll waits for it: service begins when
the response before has left. What a request or a quota lets the broker wait is no latency of it either; one pause that
meets many requests is one moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pydantic import Field

from pipeline.analysis.claims.kafka.brokers import LATENCY_OUTLIER
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, SERVER
from pipeline.analysis.rules.case.texts import SEEN, SLOW, Texts, never, not_why, own_clients
from pipeline.analysis.rules.counted import clients, finding, last_of_each
from pipeline.analysis.rules.episode import Episode, Shown
from pipeline.analysis.rules.kafka.links import SLOWED
from pipeline.analysis.rules.kafka.member_texts import SLOW_BROKER
from pipeline.analysis.rules.kafka.thresholds import SLOW_SECONDS
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import moments
from pipeline.analysis.rules.rule import OF_SERVER, Counting, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, SERVICE_US, Tables
from pipeline.humanize import clock, listed, pluralize

_ADVICE = (
    "Now: look at the broker at that time: garbage collection, a full or slow disk, an election, replicas that lag "
    "(acks=all waits for them); `silver.exchanges` by latency_us shows which clients and requests it hit. Fix: move "
    "leaders off it (`kafka-leader-election.sh`, `kafka-reassign-partitions.sh`), or give it what it lacks; "
    "replica.lag.time.max.ms and min.insync.replicas decide how long acks=all waits."
)


def _late(case: Case) -> str:
    """Which api how late, the one that the broker itself is slow at first."""
    apis = case.details.get("apis")
    slow = apis.items() if isinstance(apis, dict) else ()
    return listed(f"{api} up to {float(one.get('peak_us') or 0) / 1_000_000:.1f} s" for api, one in slow) or (
        f"up to {float(case.details.get('peak') or 0) / 1_000_000:.1f} s"
    )


class LatencyOutlier(Rule):
    """A broker took far longer than usual to answer requests that do not wait by design."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        slow_seconds: Seconds = SLOW_SECONDS
        slow_answers: Count = Field(
            default=3, description="Slow answers of one broker; above info at this many moments"
        )
        slow_ratio: Ratio = Field(
            default=20.0, description="Times the usual 95th percentile that the slowest must take"
        )
        slow_samples: Count = Field(
            default=20, description="Answers of an api and broker from which its usual latency follows"
        )

    name = "latency_outlier"
    title = "Slow broker"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("warning", "info")
    advice = (_ADVICE,)
    urgency = SLOW
    shown_by = ShownBy(grows="latency")
    texts = Texts(
        headline=lambda case: f"Broker {case.server} answered {_late(case)} late: {case.who} waited",
        now=lambda case: (
            f"Look at broker {case.server} now: garbage collection, disk, an election, replicas that lag (acks=all "
            "waits for them). Restart it if it hangs."
        ),
        fix=SLOW_BROKER,
        reasoning=f"{SEEN}the time between request and answer. {not_why('broker')}",
        source=lambda case: f"broker {case.server}",
        affected=own_clients,
        is_cause=never,
    )
    gathered = OF_SERVER
    subject = (SERVER,)
    counting = Counting(keeps_each=True)
    effects = (
        Link(("unanswered_requests",), (SERVER,), SLOWED),
        Link(("duplicate_write", "connection_churn"), (CLIENT,), SLOWED),
    )
    claims = LATENCY_OUTLIER

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: of each broker the last time."""
        many = [e for e in sources.episodes.get(cls.name, ()) if e.times >= settings.slow_answers]
        usual = _usual(sources.tables, many, settings) if many else {}
        found = {e: slow for e in many if (slow := _slow(e, usual, settings))}
        for last in last_of_each(found):
            yield _finding(last, found[last], sources, settings)


_REPLICATED = ("Produce", "OffsetCommit", "TxnOffsetCommit")
_REPLICA_LAG_US = 30_000_000
"""A leader waits so long for a follower that is gone (replica.lag.time.max.ms)."""
_SETTLED_US = 5_000_000


@dataclass(frozen=True, slots=True)
class _Slow:
    """The slow answers of an api. Times are µs.

    Attributes:
        usual_us: the 95th percentile at other times.
    """

    api: str
    shown: Sequence[Shown]
    usual_us: int

    @property
    def peak_us(self) -> float:
        """The longest."""
        return max(one.value for one in self.shown)

    @property
    def of_the_broker(self) -> list[Shown]:
        """Those for which no follower is to blame."""
        return [one for one in self.shown if one.what not in _REPLICATED or one.value >= _REPLICA_LAG_US]

    def __str__(self) -> str:
        usual = f"usually below {max(self.usual_us, 1000) / 1000:.0f} ms"
        often = "once" if len(self.shown) == 1 else f"{len(self.shown)} times"
        return f"up to {self.peak_us / 1_000_000:.1f} s to answer {self.api} ({often}, {usual})"


def _slow(episode: Episode, usual: Mapping[tuple[str, str], int], settings: LatencyOutlier.Thresholds) -> list[_Slow]:
    """Of each api that took far longer than usual the slow answers, the slowest api first."""
    by_api: defaultdict[str, list[Shown]] = defaultdict(list)
    for one in episode.each:
        by_api[one.api_name].append(one)
    known = [
        _Slow(api, some, usual[episode.subject, api]) for api, some in by_api.items() if (episode.subject, api) in usual
    ]
    return sorted(
        (one for one in known if one.peak_us >= settings.slow_ratio * one.usual_us),
        key=lambda one: (-len(one.of_the_broker), -one.peak_us, one.api),
    )


def _finding(episode: Episode, slow: Sequence[_Slow], sources: Sources, settings: LatencyOutlier.Thresholds) -> Finding:
    own = [one for some in slow for one in some.of_the_broker]
    slow_us = int(settings.slow_seconds * 1_000_000)
    times = moments(sorted(one.us for one in own), slow_us)
    why = ""
    many = _many_waited(slow) if not own else ""
    if not own:
        why = f" Only what waits for replicas was slow{many}: a follower was late, or the leader's own disk slow."
    elif times == 1:
        beside = "" if len(own) == sum(len(some.shown) for some in slow) else "Beside what waits for replicas "
        met = f", which met {len(own)} of them" if len(own) > 1 else ""
        why = f" {beside}{'it' if beside else 'It'} was one pause{met}."
    summary = (
        f"{episode.server} took {', '.join(map(str, slow))}, among {pluralize(episode.times, 'slow answer')} from "
        f"{clock(episode.first_us)} to {clock(episode.last_us)} UTC, to {clients(episode)}.{why}"
    )
    if many:
        # One partition's follower may be late by itself; what meets several is the broker, or a follower of all.
        times = moments(sorted(one.us for some in slow for one in some.shown), slow_us)
    severity = "warning" if times >= settings.slow_answers else "info"
    made = replace(finding(episode, severity, summary, _ADVICE, sources, settings.slow_answers), topic=None)
    apis = {one.api: {"times": len(one.shown), "peak_us": round(one.peak_us), "usual_us": one.usual_us} for one in slow}
    return replace(made, details={**made.details, "apis": apis, "moments": times})


def _many_waited(slow: Sequence[_Slow]) -> str:
    """Of how many topics and apis answers waited for replicas, for people; nothing if of one only."""
    topics = {one.topic for some in slow for one in some.shown if one.topic is not None}
    parts = [f"{number} {what}" for number, what in ((len(topics), "topics"), (len(slow), "apis")) if number > 1]
    return f", of {' and '.join(parts)}" if parts else ""


def _usual(
    tables: Tables, episodes: Sequence[Episode], settings: LatencyOutlier.Thresholds
) -> dict[tuple[str, str], int]:
    """By broker and api that was slow its usual 95th percentile, µs; without those rarely seen.

    The usual is what the broker takes at other times than these episodes, if enough was seen of them.
    """
    spans = {
        "server": [e.subject for e in episodes],
        "first_us": [e.first_us for e in episodes],
        "last_us": [e.last_us for e in episodes],
    }
    tables.add("slow_spans", pa.table(spans))
    rows = tables.rows(
        f"""
        WITH answers AS (
            SELECT {ADDRESS["server"]} AS server, api_name, {SERVICE_US} AS took_us, epoch_us(ts) AS us FROM exchanges
            WHERE protocol = 'kafka' AND {SERVICE_US} IS NOT NULL AND api_name IN (SELECT unnest($apis))
                AND {ADDRESS["server"]} IN (SELECT unnest($servers))
        ), begun AS (
            SELECT server, first_us, max(last_us) OVER (PARTITION BY server ORDER BY first_us) AS last_us
            FROM slow_spans
        ), placed AS (
            SELECT answers.*, coalesce(answers.us > begun.last_us, true) AS outside
            FROM answers ASOF LEFT JOIN begun ON begun.server = answers.server AND answers.us >= begun.first_us
        )
        SELECT server, api_name, count(*) AS answers, count(*) FILTER (outside) AS others,
            quantile_disc(took_us, 0.95) AS usual,
            quantile_disc(took_us, 0.95) FILTER (outside) AS other
        FROM placed GROUP BY server, api_name
        """,
        apis=sorted({one.api_name for e in episodes for one in e.each}),
        servers=sorted({e.subject for e in episodes}),
    )
    enough = settings.slow_samples
    return {
        (row.server, row.api_name): row.other if row.others >= enough else row.usual
        for row in rows
        if row.answers >= enough
    }


def beside_throttling(found: Sequence[Shown]) -> list[Shown]:
    """The symptoms without slow answers that a quota explains: a broker reads on from who was throttled afterwards."""
    held: defaultdict[tuple[str, str | None, str], list[tuple[int, int]]] = defaultdict(list)
    for one in found:
        if one.rule == "throttled":
            answered_us = one.us + one.latency_us
            held[one.server, one.client_id, one.client_ip].append((answered_us, answered_us + round(1000 * one.value)))

    merged = {who: _merged(spans) for who, spans in held.items()}

    def is_held(one: Shown) -> bool:
        spans = merged.get((one.server, one.client_id, one.client_ip), [])
        place = bisect_left(spans, (one.us + one.latency_us, 0))
        return place > 0 and spans[place - 1][1] > one.us

    return [one for one in found if one.rule != LatencyOutlier.name or not is_held(one)] if held else list(found)


def on_settled_connections(found: Sequence[Shown], tables: Tables) -> list[Shown]:
    """The symptoms without slow answers to what a connection begins with.

    A client's first requests wait for logins and metadata, and meet brokers that have just started.

    Args:
        found: symptoms.
        tables: ``exchanges``.
    """
    slow = sorted({one.connection_id for one in found if one.rule == LatencyOutlier.name})
    if not slow:
        return list(found)
    rows = tables.rows(
        """
        SELECT connection_id, min(epoch_us(ts)) AS us FROM exchanges
        WHERE connection_id IN (SELECT unnest($slow)) GROUP BY connection_id
        """,
        slow=slow,
    )
    begun = {row.connection_id: row.us for row in rows}
    return [one for one in found if one.rule != LatencyOutlier.name or one.us - begun[one.connection_id] >= _SETTLED_US]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times, in order, without any that overlap."""
    found: list[tuple[int, int]] = []
    for from_us, until_us in sorted(spans):
        if found and from_us <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until_us)
        else:
            found.append((from_us, until_us))
    return found
