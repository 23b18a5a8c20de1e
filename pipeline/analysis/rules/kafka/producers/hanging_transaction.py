"""Rule ``hanging_transaction``: a transaction stays open because its producer is gone or does not end it.

Evidence: ``silver.transactions``, which begins one at AddPartitionsToTxn or, with transactions v2 (KIP-890), at the
first Produce of version 12 and later; the timeout that InitProducerId asked for. It hangs if it is open for longer than
that timeout and the coordinator's own check; if the same client came back under another transactional id and left it
behind; or if nothing of it was seen for much longer than its producer's transactions usually take. One that the
coordinator ended (its marker without an EndTxn, after the timeout) has hung. Whether a consumer waits for it is
another question: ``lso_stalled`` answers it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.coming_again import last_of_each
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.finding_settings import FindingSettings

ADVICE = (
    "Now: if the producer lives, look where it hangs between beginTransaction and commitTransaction; if it is gone, "
    "start it with the same transactional.id (initTransactions aborts what was left open), or end it with "
    "`kafka-transactions.sh --bootstrap-server B find-hanging --broker-id N`, then `abort --topic T --partition P "
    "--start-offset O`. Fix: keep transactional.id the same over restarts (one for each instance or task, no random "
    "part); end each transaction in every path (abortTransaction in the handler of errors); transaction.timeout.ms "
    "(Java and librdkafka: 60 s by default) no longer than readers may wait."
)
RULE = Rule(
    "hanging_transaction",
    "kafka",
    ("critical", "warning"),
    "A transaction stays open: its producer is gone, or does not end it.",
    ("hanging_seconds", "hanging_ratio"),
    ("transactions", "exchanges"),
    advice=(ADVICE,),
)
_END_TXN, _COORDINATOR_CHECKS_US = 26, 20_000_000
"""A coordinator looks for timed out transactions each ten seconds
(transaction.abort.timed.out.transaction.cleanup.interval.ms), and its markers take a while."""
_ENOUGH = 3
"""Transactions that it takes to know how long they usually are open."""


@dataclass(frozen=True, slots=True)
class Introduced:
    """An accepted InitProducerId. Times are µs.

    Attributes:
        timeout_us: transaction.timeout.ms that it asks for.
        host: address of the client.
    """

    us: int
    transactional_id: str
    timeout_us: int
    client_id: str | None
    host: str
    exchange_id: str


@finds(RULE)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule: of each transactional id the last transaction that hangs or has hung."""
    rows = sources.tables.rows("""
        SELECT cluster, transactional_id, producer_id, producer_epoch, client_id, client, state, partitions, records,
            first_exchange_id, end_exchange_id, epoch_us(first_ts) AS first_us, epoch_us(last_ts) AS last_us,
            epoch_us(end_ts) AS end_us, duration_us
        FROM transactions WHERE complete AND transactional_id <> ''
        ORDER BY cluster, first_us, transactional_id, first_exchange_id
    """)
    doubtful = [row for row in rows if _may_hang(row, sources, settings)]
    if not doubtful:
        return []
    usual, introduced = _usual_us(rows), _introductions(sources)
    ended = _ends_asked_for(sources, doubtful)
    found = (
        finding
        for row in doubtful
        if (finding := _judge(row, usual, introduced[row.cluster], ended, sources, settings)) is not None
    )
    return last_of_each(found)


def _may_hang(row: Row, sources: Sources, settings: FindingSettings) -> bool:
    """Whether it was open for long enough to be worth a look."""
    if row.state not in ("ongoing", "aborting", "aborted"):
        return False
    end_us = row.end_us if row.end_us is not None else sources.ends.get(row.cluster, row.last_us)
    return bool(end_us - row.first_us >= settings.hanging_seconds * 1_000_000)


def _usual_us(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """How long transactions take until they commit, µs: by cluster, and client or partition, where several did."""
    durations: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows:
        if row.state in ("committing", "committed") and row.duration_us is not None:
            for what in (*row.partitions, f"client {row.client_id}"):
                durations[row.cluster, what].append(row.duration_us)
    # The longest counts: who writes once a minute and who writes once a second may share a partition.
    return {what: max(some) for what, some in durations.items() if len(some) >= _ENOUGH}


def _usual_of(row: Row, usual: Mapping[tuple[str, str], int]) -> int | None:
    """Of its client, else of those who write to the same partitions; None: not known."""
    own = usual.get((row.cluster, f"client {row.client_id}"))
    return (
        own
        if own is not None
        else max((usual[row.cluster, p] for p in row.partitions if (row.cluster, p) in usual), default=None)
    )


def _introductions(sources: Sources) -> defaultdict[str, list[Introduced]]:
    """By cluster, in order of time."""
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, epoch_us(ts) AS us, exchange_id, request_body
        FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {ApiKey.INIT_PRODUCER_ID} AND coalesce(len(error_codes), 0) = 0
            AND request_body IS NOT NULL
        ORDER BY us, exchange_id
    """)
    found: defaultdict[str, list[Introduced]] = defaultdict(list)
    clusters = sources.facts.clusters_at((row.server, row.us) for row in rows)
    for cluster, row in zip(clusters, rows, strict=True):
        body = orjson.loads(row.request_body)
        if name := body.get("transactionalId"):
            timeout_us = (body.get("transactionTimeoutMs") or 0) * 1000
            one = Introduced(row.us, name, timeout_us, row.client_id, row.client_ip, row.exchange_id)
            found[cluster].append(one)
    return found


def _ends_asked_for(sources: Sources, doubtful: Sequence[Row]) -> frozenset[str]:
    """Of the exchanges that ended them, those in which their producer asked for it, or took the id anew."""
    ids = sorted({row.end_exchange_id for row in doubtful if row.end_exchange_id})
    rows = sources.tables.rows(
        f"""
        SELECT exchange_id FROM exchanges
        WHERE list_contains($ids, exchange_id) AND api_key IN ({_END_TXN}, {ApiKey.INIT_PRODUCER_ID})
        """,
        ids=ids,
    )
    return frozenset(row.exchange_id for row in rows)


def _judge(
    row: Row,
    usual: Mapping[tuple[str, str], int],
    introduced: Sequence[Introduced],
    ended: frozenset[str],
    sources: Sources,
    settings: FindingSettings,
) -> Finding | None:
    end_us = sources.ends.get(row.cluster, row.last_us)
    own = [one for one in introduced if one.transactional_id == row.transactional_id]
    timeout_us = max((one.timeout_us for one in own if one.us <= row.first_us + 1_000_000), default=0)
    if row.state != "ongoing":
        by_coordinator = row.end_exchange_id not in ended and timeout_us and row.end_us - row.first_us >= timeout_us
        retaken = any(row.first_us < one.us <= row.end_us for one in own)
        if not by_coordinator or retaken:
            return None
        why = f"The coordinator aborted it after transaction.timeout.ms ({seconds(timeout_us)})"
        return _finding(row, row.end_us, why, "closed", timeout_us, None, settings)
    host = (row.client or "").rpartition(":")[0].strip("[]")
    heir = next(iter(_heirs(row, host, introduced)), None)
    silent_us, usual_us = end_us - row.last_us, _usual_of(row, usual)
    if not own or silent_us < max(settings.hanging_seconds * 1_000_000, settings.hanging_ratio * (usual_us or 0)):
        return None
    if heir is not None:
        why = (
            f"Its client began anew as {heir.transactional_id} at {clock(heir.us)} UTC and left it behind; the "
            f"coordinator ends it after {seconds(timeout_us)}"
        )
    elif timeout_us and end_us - row.first_us > timeout_us + _COORDINATOR_CHECKS_US and row.partitions:
        why = f"It is older than its timeout of {seconds(timeout_us)}, and nothing was seen that ended it"
    elif usual_us is not None:
        why = (
            f"Nothing was seen of it for {seconds(silent_us)}: others there were committed after "
            f"{usual_us / 1_000_000:.1f} s at most"
        )
    else:
        return None
    return _finding(row, end_us, why, "open", timeout_us, heir, settings)


def _heirs(row: Row, host: str, introduced: Sequence[Introduced]) -> Iterator[Introduced]:
    """The same client, later, under an id that it did not have while this transaction was written."""
    before = {one.transactional_id for one in introduced if one.us <= row.last_us}
    for one in introduced:
        is_same = one.client_id == row.client_id and one.client_id is not None and one.host == host
        if one.us > row.last_us and is_same and one.transactional_id not in before:
            yield one


def _finding(
    row: Row, until_us: int, why: str, state: str, timeout_us: int, heir: Introduced | None, settings: FindingSettings
) -> Finding:
    last = f"; nothing of it was seen since {clock(row.last_us)} UTC" if state == "open" else ""
    places = ", ".join(row.partitions[:3]) + (" and more" if len(row.partitions) > 3 else "")
    summary = (
        f"Transaction of {row.transactional_id} (producer {row.producer_id} epoch {row.producer_epoch}, client "
        f"{row.client_id or '?'} at {row.client or '?'}) {'was' if state == 'closed' else 'is'} open for "
        f"{seconds(until_us - row.first_us)} since {clock(row.first_us)} UTC, with {row.records} records in "
        f"{places or 'no partition yet'}{last}. {why}."
    )
    topics = {place.rpartition("-")[0] for place in row.partitions}
    only = row.partitions[0].rpartition("-")[2] if len(row.partitions) == 1 else ""
    evidence = [row.first_exchange_id, row.end_exchange_id, heir.exchange_id if heir else None]
    return Finding(
        rule=RULE.name, severity="warning" if state == "closed" else "critical", subject=row.transactional_id,
        state="closed" if state == "closed" else "open", cluster=row.cluster,
        topic=topics.pop() if len(topics) == 1 else None, partition=int(only) if only.isdigit() else None,
        group_id=None, first_us=row.first_us, last_us=until_us, summary=summary, advice=ADVICE,
        evidence=[one for one in evidence if one][: settings.max_evidence],
        details={
            "transactional_id": row.transactional_id, "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch, "client_id": row.client_id, "address": row.client,
            "partitions": list(row.partitions), "records": row.records, "timeout_us": timeout_us,
            "age_us": until_us - row.first_us, "came_back_as": heir.transactional_id if heir else None,
            "enough_us": min(until_us, row.last_us + int(settings.hanging_seconds * 1_000_000)),
        },
    )  # fmt: skip
