"""Rule ``produce_refused``: brokers refuse records, and no later attempt carries them.

Meaning: what the producer sent is not in the log. Where the error is one that clients do not repeat, the records are
lost unless the application keeps them; where they do repeat it, they are lost once ``delivery.timeout.ms`` has passed.
Evidence: error codes of Produce answers by partition; for each refused batch the records of later accepted batches of
the same client and partition whose timestamps are within those of the refused one: Java divides a batch that is too
large, and whoever repeats a batch sends the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from shlex import quote
from typing import NamedTuple

from pydantic import Field

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.claims.kafka.producers import PRODUCE_REFUSED
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, TOPIC
from pipeline.analysis.rules.case.texts import LOSES
from pipeline.analysis.rules.format import times, wait_or_waits, who
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import Row
from pipeline.humanize import clock, pluralize, seconds, some

_JUDGED = (
    *KAFKA.of_area("record", "replicas", "storage", api=int(ApiKey.PRODUCE)),
    int(KafkaError.INVALID_TOPIC_EXCEPTION),
    int(KafkaError.TOPIC_AUTHORIZATION_FAILED),
)
"""What the records themselves are refused for; leaders, sequences and transactions have rules of their own."""
REPEATED = tuple(code for code in _JUDGED if KAFKA.meaning(None, code).is_retried)
"""Clients send the same batch again after these, until ``delivery.timeout.ms``."""
FINAL = tuple(code for code in _JUDGED if code not in REPEATED)


def _facts(code: int) -> CodeFacts:
    return KAFKA.meaning(int(ApiKey.PRODUCE), code)


class ProduceRefused(Rule):
    """Brokers refuse records that a producer writes."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        produce_refused_times: Count = Field(
            default=1, description="Refused batches of one client and topic that no later attempt carries"
        )
        produce_refused_retries: Count = Field(default=3, description="Refusals, where later attempts carry all of it")
        produce_refused_seconds: Seconds = Field(default=5.0, description="For how long, before an attempt is accepted")

    name = "produce_refused"
    title = "Produce refused"
    protocol = "kafka"
    about = "producers"
    severities = ("critical", "warning")
    reads = ("events", "batches")
    advice = tuple(dict.fromkeys(_facts(code).advice for code in _JUDGED))
    urgency = LOSES
    gathered = OF_CLIENT
    effects = (Link(("sequence_gap",), (CLIENT, TOPIC), "what was refused is missing in the sequence"),)
    claims = PRODUCE_REFUSED

    @classmethod
    def is_lasting(cls, case: Case) -> bool:
        """Records that were not written stay missing."""
        return bool(case.records)

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        found = []
        for (cluster, topic, client_id), rows in groupby(_attempts(sources), key=_OF_CLIENT):
            refused: list[Refused] = []
            accepted: list[Accepted] = []
            twins: dict[str, Collection[str]] = {}
            for _, of_host in groupby(rows, key=_OF_HOST):
                attempts = list(of_host)
                twins |= twins_of(attempts)
                for _, some_rows in groupby(attempts, key=_OF_PARTITION):
                    batches, good = refused_batches(some_rows, twins)
                    refused += batches
                    accepted += good if batches else ()
            finding = _finding((cluster, topic, client_id), refused, accepted, twins, sources, settings)
            if finding is not None:
                found.append(finding)
        return found


_REFUSED = f"""
    SELECT DISTINCT cluster, topic, client_id FROM events
    WHERE kind = 'produce_rejected' AND error_code IN {(*REPEATED, *FINAL)} AND topic IS NOT NULL
"""
_ATTEMPTS = f"""
    WITH refused AS ({_REFUSED}), outcomes AS (
        SELECT * FROM events WHERE kind IN ('produced', 'produce_rejected')
        QUALIFY row_number() OVER (PARTITION BY exchange_id, topic, partition ORDER BY ordinal) = 1
    )
    SELECT e.cluster, e.topic, e.partition, e.client_id, host_of(e.client) AS host, e.client, e.server,
        epoch_us(e.ts) AS us, e.exchange_id, e.kind, e.error_code, e.error_name, coalesce(b.ordinal, 0) AS ordinal,
        coalesce(b.records, e.records, 0) AS records, coalesce(b.size, 0) AS size, b.base_timestamp, b.max_timestamp,
        b.base_sequence
    FROM outcomes AS e
        SEMI JOIN refused AS r ON e.cluster = r.cluster AND e.topic = r.topic
            AND e.client_id IS NOT DISTINCT FROM r.client_id
        LEFT JOIN (SELECT * FROM batches WHERE source = 'produce') AS b
            ON e.exchange_id = b.exchange_id AND e.topic = b.topic AND e.partition = b.partition
    ORDER BY e.cluster, e.topic, e.client_id, host, e.partition, us, e.exchange_id, ordinal
"""
"""Each batch that such a client wrote to such a topic, with the broker's verdict: the first where a request has two."""
_MOST_WAITING = 200
"""Batches refused last, of one client and partition, that an accepted one may carry: its pieces follow it at once."""
_IN_FLIGHT_US = 500_000
"""What is accepted within this many µs was under way beside the refused batch: it does not show that all is well."""
_MOST_TWINS = 100
"""Processes of one client id on one host that one connection is compared with."""


@dataclass(slots=True)
class Refused:
    """A batch that was refused, as often as it was tried.

    Attributes:
        records, size: records and bytes of it.
        missing: records that no later accepted batch has carried.
        code, error: of the last refusal.
        tries: times (µs since the epoch) and exchange ids.
        connections: addresses of the client from which it was tried.
    """

    host: str
    records: int
    size: int
    missing: int
    code: int
    error: str
    spans: tuple[int, int] | None
    tries: list[tuple[int, str]] = field(default_factory=list)
    connections: set[str] = field(default_factory=set)

    @property
    def is_repeated(self) -> bool:
        """Whether its client may still send it again."""
        return self.code in REPEATED

    def is_under_way(self, end_us: int, patience_us: int) -> bool:
        """Whether another attempt may still come: none was due before the end of what was seen."""
        gap = (self.tries[-1][0] - self.tries[0][0]) // max(len(self.tries) - 1, 1)
        return self.is_repeated and end_us - self.tries[-1][0] <= max(3 * gap, patience_us)


class Accepted(NamedTuple):
    """When a batch was accepted, µs since the epoch, and from which address of the client."""

    us: int
    connection: str


Twins = Mapping[str, Collection[str]]
"""By connection those of other processes."""


def refused_batches(attempts: Iterable[Row], twins: Twins) -> tuple[list[Refused], list[Accepted]]:
    """What clients of one name on one host were refused in one partition, and the last accepted batch of each.

    Args:
        attempts: their batches in the order of time.
        twins: see :func:`twins_of`.
    """
    refused: list[Refused] = []
    waiting: deque[Refused] = deque(maxlen=_MOST_WAITING)
    again: dict[tuple[object, ...], Refused] = {}
    accepted: dict[str, Accepted] = {}
    for row in attempts:
        spans = None if row.base_timestamp is None else (row.base_timestamp, row.max_timestamp)
        if not row.error_code:  # None: the answer was not seen, and may have been a good one
            if row.error_code is not None:
                accepted[row.client] = Accepted(row.us, row.client)
            _carry((one for one in waiting if _is_own(row.client, one, twins)), row.records, spans)
            continue
        if row.error_code not in (*REPEATED, *FINAL):
            continue
        # Clients repeat nothing after a final refusal; a process that is started again reads and sends the same.
        is_repeated = row.error_code in REPEATED
        same = (row.records, row.size, spans, row.base_sequence if is_repeated else None)
        one = again.get(same)
        if one is None or not (is_repeated or _is_of_another_life(row, one, twins)):
            one = Refused(row.host, row.records, row.size, row.records, row.error_code, row.error_name, spans)
            refused.append(one)
            waiting.append(one)
            again[same] = one
        one.tries.append((row.us, row.exchange_id))
        one.connections.add(row.client)
    return refused, list(accepted.values())


def twins_of(attempts: Iterable[Row]) -> Twins:
    """Of each connection the others to the same server at the same time, those of one client id on one host.

    A process writes to a server by one connection; it opens another when the first one has ended.
    """
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for row in attempts:
        first, last = spans.get((row.server, row.client), (row.us, row.us))
        spans[row.server, row.client] = min(first, row.us), max(last, row.us)
    found: defaultdict[str, set[str]] = defaultdict(set)
    by_server = groupby(sorted((server, *span, client) for (server, client), span in spans.items()), itemgetter(0))
    for _, of_server in by_server:
        beside: list[tuple[int, str]] = []
        for _, first_us, last_us, client in of_server:
            beside = [(until_us, other) for until_us, other in beside if until_us > first_us]
            for _, other in beside[-_MOST_TWINS:]:
                found[client].add(other)
                found[other].add(client)
            beside.append((last_us, client))
    return found


def _is_of_another_life(row: Row, one: Refused, twins: Twins) -> bool:
    """Whether a batch with the records of one that was refused for good comes of the same process, started again."""
    return one.spans is not None and row.client not in one.connections and _is_own(row.client, one, twins)


def _is_own(connection: str, one: Refused, twins: Twins) -> bool:
    """Whether what comes by a connection may be of the process that was refused."""
    return connection in one.connections or one.connections.isdisjoint(twins.get(connection, ()))


def _carry(refused: Iterable[Refused], records: int, spans: tuple[int, int] | None) -> None:
    """An accepted batch carries the records of the first refused one that its timestamps are in."""
    for one in refused:
        if one.missing and spans and one.spans and one.spans[0] <= spans[0] and spans[1] <= one.spans[1]:
            one.missing -= min(records, one.missing)
            return


_OF_CLIENT = attrgetter("cluster", "topic", "client_id")
_OF_HOST = attrgetter("host")
_OF_PARTITION = attrgetter("partition")


def _attempts(sources: Sources) -> list[Row]:
    return sources.tables.rows(_ATTEMPTS) if kinds(sources).has_event("produce_rejected") else []


def _finding(
    subject: tuple[str, str, str | None],
    refused: Sequence[Refused],
    accepted: Sequence[Accepted],
    twins: Twins,
    sources: Sources,
    settings: ProduceRefused.Thresholds,
) -> Finding | None:
    cluster, topic, client_id = subject
    tries = sorted(one for batch in refused for one in batch.tries)
    if not tries:
        return None
    first_us, last_us = tries[0][0], tries[-1][0]
    patience_us = int(settings.produce_refused_seconds * 1_000_000)
    end_us = sources.ends.get(cluster, last_us)
    waiting = [one for one in refused if one.missing and one.is_under_way(end_us, patience_us)]
    lost = [one for one in refused if one.missing and one not in waiting]
    if lost and len(tries) < settings.produce_refused_times:
        return None
    is_started_again = any(len(one.tries) > 1 for one in refused if not one.is_repeated)
    retries = settings.produce_refused_times if is_started_again else settings.produce_refused_retries
    if not lost and (len(tries) < retries or last_us - first_us < patience_us):
        return None
    missing, held = sum(one.missing for one in lost), sum(one.missing for one in waiting)
    worst = max(lost or refused, key=lambda one: (one.missing, one.size, one.code))
    errors = some(one.error for one in refused)
    clients = some(who(client_id, one.host) for one in refused)
    least = settings.produce_refused_times if lost else retries
    own = [max((us for us, where in accepted if _is_own(where, one, twins)), default=0) for one in refused]
    is_over = all(us - one.tries[-1][0] >= _IN_FLIGHT_US for us, one in zip(own, refused, strict=True)) and not waiting
    state: State = "resolved" if is_over else sources.state_unhealed(cluster, first_us, last_us, 1)
    doubt = f" It is unknown since {clock(last_us)} UTC whether it may write there again: it has not tried."
    return Finding(
        rule=ProduceRefused.name, severity="critical" if lost else "warning", subject=f"{topic}/{client_id or '?'}",
        state=state, cluster=cluster, topic=topic, partition=None, group_id=None, first_us=first_us, last_us=last_us,
        summary=f"Brokers refused records of {clients} for topic {topic}, {times(len(tries), first_us, last_us)} "
        f"({errors}): {_fate(missing, held, last_us - first_us)}{doubt if state == 'unknown' else ''}",
        advice=_facts(worst.code).filled(topic=quote(topic)).advice,
        evidence=[exchange_id for _, exchange_id in tries[: settings.max_evidence]],
        details={
            "times": len(tries), "client_id": client_id, "errors": sorted({one.error for one in refused}),
            "batches": len(refused), "records": sum(one.records for one in refused), "records_lost": missing,
            "records_waiting": held, "accepted_us": max(own) or None,
            "largest_batch": max(one.size for one in refused),
            **({"known_until_us": last_us} if state == "unknown" else {}),
            "enough_us": tries[min(least, len(tries)) - 1][0],
        },
    )  # fmt: skip


def _fate(missing: int, held: int, span_us: int) -> str:
    """What became of the records."""
    if missing:
        were = "was" if missing == 1 else "were"
        return f"{pluralize(missing, 'record')} {were} not written by any later attempt either."
    if held:
        waits = f"{pluralize(held, 'record')} {wait_or_waits(held)}"
        return f"{waits} for an attempt that is accepted, for {seconds(span_us)} so far."
    return f"later attempts wrote all of them, {seconds(span_us)} after the first."
