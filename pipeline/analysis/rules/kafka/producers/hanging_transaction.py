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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from decoder.kafka.apis import ApiKey
from pipeline.analysis.claims.kafka.producers import HANGING_TRANSACTION
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, PARTITION, TRANSACTION
from pipeline.analysis.rules.case.texts import SEEN, STANDS, Texts
from pipeline.analysis.rules.kafka.links import OPEN_TRANSACTION
from pipeline.analysis.rules.kafka.listening import Listening
from pipeline.analysis.rules.kafka.producers.aborting import by_hand
from pipeline.analysis.rules.kafka.producers.introductions import Introduced, Introductions, introductions
from pipeline.analysis.rules.kafka.producers.transaction_texts import (
    END,
    end_transaction,
    holder,
    is_over,
    starving,
    transaction,
)
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.rules.rule import OF_TRANSACTION, Link, Rule
from pipeline.analysis.rules.thresholds import Ratio, RuleThresholds, Seconds
from pipeline.analysis.tables import Row
from pipeline.humanize import brief, clock, pluralize, seconds

ADVICE = (
    "Now: if the producer lives, look where it hangs between beginTransaction and commitTransaction; if it is gone, "
    "start it with the same transactional.id (initTransactions aborts what was left open), or end it by hand: "
    "{commands}. Fix: keep transactional.id the same over restarts (one for each instance or task, no random "
    "part); end each transaction in every path (abortTransaction in the handler of errors); transaction.timeout.ms "
    "(Java and librdkafka: 60 s by default) no longer than readers may wait."
)


def _is_late(case: Case) -> bool:
    """Whether it was seen open for longer than its timeout; else it only takes longer than others do."""
    timeout_us, age_us = case.details.get("timeout_us") or 0, case.details.get("age_us") or 0
    return bool(0 < timeout_us <= age_us)


def _is_left(case: Case) -> bool:
    """Whether its client started over under another id."""
    return bool(case.details.get("came_back_as"))


def _timeout(case: Case) -> str:
    return seconds(int(case.details.get("timeout_us") or 0))


def _silence(case: Case) -> str:
    """For how long nothing was seen of it."""
    silent_us = case.details.get("silent_us", case.details.get("age_us"))
    return seconds(silent_us) if isinstance(silent_us, int) else "long"


def _hanging(case: Case) -> str:
    where = "" if case.places == "?" else f" on {case.places}"
    waits = starving(list(case.groups), case)
    behind = f": {waits}" if waits else ""
    if _is_left(case):
        again = case.details["came_back_as"]
        return f"{holder(case)} came back as {again} and left {transaction(case)} open{where}{behind}"
    if is_over(case):
        kept = f"{holder(case)} kept {transaction(case)} open{where} beyond its timeout of {_timeout(case)}"
        return f"{kept}: the coordinator aborted it"
    keeps = f"{holder(case)} keeps {transaction(case)} open{where}"
    if _is_late(case):
        return f"{keeps} beyond its timeout of {_timeout(case)}{behind}"
    return f"{keeps}{behind}" if behind else f"{keeps}, and nothing was seen of it for {_silence(case)}"


def _hanging_sure(case: Case) -> str:
    """What shows that it hangs, and until when anybody listened."""
    until_us = case.details.get("known_until_us")
    deaf = f" The capture has nothing after {clock(until_us)} UTC." if isinstance(until_us, int) else ""
    unheard_us = case.details.get("coordinator_unheard_us")
    if isinstance(unheard_us, int):
        deaf = f" After {clock(unheard_us)} UTC nothing was seen of its coordinator."
    return f"{SEEN}{_ground(case)}.{deaf}"


def _ground(case: Case) -> str:
    if is_over(case):
        return f"the transaction began, and its end without its producer asking for it, after {_timeout(case)}"
    if _is_left(case):
        again = case.details["came_back_as"]
        return f"the transaction began, its client started over as {again}, and nothing ended what it had left open"
    if _is_late(case):
        return f"the transaction began, and was not ended within its timeout of {_timeout(case)}"
    usual_us = case.details.get("usual_us")
    usual = f", while others there were committed after {brief(usual_us)} at most" if isinstance(usual_us, int) else ""
    timeout = f"; its timeout of {_timeout(case)} has not passed" if case.details.get("timeout_us") else ""
    return f"the transaction began, and nothing was seen of it for {_silence(case)}{usual}{timeout}"


class HangingTransaction(Rule):
    """A transaction stays open: its producer is gone, or does not end it."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        hanging_seconds: Seconds = Field(
            default=30.0, description="How long a transaction is open, and nothing was seen of it, at least"
        )
        hanging_ratio: Ratio = Field(
            default=5.0, description="Times as long as the longest that its client, or others there, took to commit"
        )

    name = "hanging_transaction"
    title = "Transaction hangs"
    protocol = "kafka"
    about = "producers"
    severities = ("critical", "warning")
    reads = ("transactions", "exchanges", "batches")
    advice = (ADVICE,)
    urgency = STANDS
    texts = Texts(
        headline=_hanging,
        now=end_transaction,
        fix=f"{END}.",
        reasoning=_hanging_sure,
        source=holder,
        is_likely=lambda case: (
            case.lead.row.get("state") == "unknown" or not (is_over(case) or _is_left(case) or _is_late(case))
        ),
    )
    gathered = OF_TRANSACTION
    subject = (TRANSACTION,)
    is_silence = True
    is_at_last_stable_offset = True
    effects = (
        Link(("lso_stalled",), (TRANSACTION,), OPEN_TRANSACTION),
        Link(("lso_stalled", "read_committed_starved"), (PARTITION,), OPEN_TRANSACTION),
        Link(("request_refused",), (GROUP,), "offsets of an open transaction cannot be read"),
    )
    claims = HANGING_TRANSACTION

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule: of each transactional id the last transaction that hangs or has hung."""
        rows = sources.tables.rows(_COMPLETE)
        doubtful = [row for row in rows if _may_hang(row, sources, settings)]
        if not doubtful:
            return []
        usual, introduced = _usual_us(rows), introductions(sources)
        ended = _ends_asked_for(sources, doubtful)
        listening = Listening(sources)
        found = (_judge(row, usual, introduced[row.cluster], ended, listening, sources, settings) for row in doubtful)
        hanging = [one for one in found if one is not None]
        starts = _starts([one.row for one in hanging], sources)
        return last_of_each(_finding(one, starts.get(number, {}), settings) for number, one in enumerate(hanging))


_COMPLETE = """
    SELECT cluster, transactional_id, producer_id, producer_epoch, client_id, client, state, partitions, records,
        first_exchange_id, end_exchange_id, epoch_us(first_ts) AS first_us, epoch_us(last_ts) AS last_us,
        epoch_us(end_ts) AS end_us, duration_us
    FROM transactions WHERE complete AND transactional_id <> ''
    ORDER BY cluster, first_us, transactional_id, first_exchange_id
"""
_END_TXN, _COORDINATOR_CHECKS_US = 26, 20_000_000
"""A coordinator looks for timed out transactions each ten seconds
(transaction.abort.timed.out.transaction.cleanup.interval.ms), and its markers take a while."""
_ENOUGH = 3
"""Transactions that it takes to know how long they usually are open."""


def _may_hang(row: Row, sources: Sources, settings: HangingTransaction.Thresholds) -> bool:
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


def _ends_asked_for(sources: Sources, doubtful: Sequence[Row]) -> frozenset[str]:
    """Of the exchanges that ended them, those in which their producer asked for it, or took the id again."""
    ids = sorted({row.end_exchange_id for row in doubtful if row.end_exchange_id})
    rows = sources.tables.rows(
        f"""
        SELECT exchange_id FROM exchanges
        WHERE exchange_id IN (SELECT unnest($ids)) AND api_key IN ({_END_TXN}, {ApiKey.INIT_PRODUCER_ID})
        """,
        ids=ids,
    )
    return frozenset(row.exchange_id for row in rows)


def _judge(
    row: Row,
    usual: Mapping[tuple[str, str], int],
    introduced: Introductions,
    ended: frozenset[str],
    listening: Listening,
    sources: Sources,
    settings: HangingTransaction.Thresholds,
) -> _Hanging | None:
    end_us = sources.ends.get(row.cluster, row.last_us)
    timeout_us = introduced.timeout_us(row.transactional_id, row.first_us + 1_000_000)
    if row.state != "ongoing":
        by_coordinator = row.end_exchange_id not in ended and timeout_us and row.end_us - row.first_us >= timeout_us
        if not by_coordinator or introduced.is_taken_anew(row.transactional_id, row.first_us, row.end_us):
            return None
        why = f"The coordinator aborted it after transaction.timeout.ms ({seconds(timeout_us)})"
        return _Hanging(row, row.end_us, why, "resolved", timeout_us)
    known_us = listening.until_us(row.cluster, row.last_us)
    host = (row.client or "").rpartition(":")[0].strip("[]")
    heir = introduced.heir(row.client_id, host, row.last_us)
    if heir is not None and heir.us > known_us:
        heir = None
    silent_us, usual_us = known_us - row.last_us, _usual_of(row, usual)
    coordinator = introduced.coordinator(row.transactional_id, row.first_us)
    if coordinator is None or silent_us < max(
        settings.hanging_seconds * 1_000_000, settings.hanging_ratio * (usual_us or 0)
    ):
        return None
    unheard_us = listening.silent_since_us(coordinator, known_us)
    grace_us = timeout_us + _COORDINATOR_CHECKS_US
    if heir is not None:
        why = (
            f"Its client started over as {heir.transactional_id} at {clock(heir.us)} UTC and left it behind; the "
            f"coordinator ends it after {seconds(timeout_us)}"
        )
    elif timeout_us and known_us - row.first_us > grace_us and row.partitions:
        why = f"It is older than its timeout of {seconds(timeout_us)}, and nothing was seen that ended it"
    elif usual_us is not None:
        why = (
            f"Nothing was seen of it for {seconds(known_us - row.last_us)}: others there were committed after "
            f"{brief(usual_us)} at most"
        )
    else:
        return None
    state: State = "ongoing" if known_us == end_us and unheard_us is None else "unknown"
    return _Hanging(row, known_us, why, state, timeout_us, heir, usual_us, unheard_us)


@dataclass(frozen=True, slots=True)
class _Hanging:
    """A transaction that hangs or has hung. Times are µs.

    Attributes:
        until_us: up to when it was seen open: its end, or when it was listened to last.
        timeout_us: what InitProducerId asked for; 0: not known.
        heir: how its client started over.
        usual_us: how long others there are open at most; None: not known.
        unheard_us: since when nothing was seen of its coordinator, if that is long.
    """

    row: Row
    until_us: int
    why: str
    state: State
    timeout_us: int
    heir: Introduced | None = None
    usual_us: int | None = None
    unheard_us: int | None = None

    @property
    def open_for(self) -> str:
        """How long it was seen open, for people."""
        since, span = clock(self.row.first_us), seconds(self.until_us - self.row.first_us)
        if self.state == "unknown":
            return f"was open for {span} from {since} UTC on"
        return f"{'was' if self.state == 'resolved' else 'is'} open for {span} since {since} UTC"

    @property
    def last_seen(self) -> str:
        """Since when nothing is known of it, for people."""
        if self.unheard_us is not None:
            return (
                f"; after {clock(self.unheard_us)} UTC nothing was seen of its coordinator, so it is not known whether "
                "it has ended"
            )
        if self.state == "unknown":
            return (
                f"; the capture has nothing after {clock(self.until_us)} UTC, so it is not known whether it has ended"
            )
        return f"; nothing of it was seen since {clock(self.row.last_us)} UTC" if self.state == "ongoing" else ""


def _starts(hanging: Sequence[Row], sources: Sources) -> dict[int, dict[str, int]]:
    """By the place of a transaction in ``hanging`` its first offset by partition, where it is known."""
    wanted = [(number, row, place) for number, row in enumerate(hanging) for place in row.partitions or ()]
    if not wanted:
        return {}
    rows = sources.tables.rows(
        """
        WITH wanted AS (
            SELECT unnest($numbers) AS number, unnest($clusters) AS cluster, unnest($producers) AS producer_id,
                unnest($epochs) AS producer_epoch, unnest($firsts) AS first_us, unnest($places) AS place
        ), written AS (
            SELECT cluster, producer_id, producer_epoch, topic || '-' || partition AS place, epoch_us(ts) AS us,
                first(base_offset ORDER BY exchange_id, ordinal) AS start
            FROM batches WHERE source = 'produce' AND is_transactional AND NOT is_control AND topic IS NOT NULL
            GROUP BY ALL
        )
        SELECT number, w.place, start FROM wanted AS w ASOF JOIN written AS b ON w.cluster = b.cluster
            AND w.producer_id = b.producer_id AND w.producer_epoch = b.producer_epoch AND w.place = b.place
            AND w.first_us <= b.us
        """,
        numbers=[number for number, _, _ in wanted],
        clusters=[row.cluster for _, row, _ in wanted],
        producers=[row.producer_id for _, row, _ in wanted],
        epochs=[row.producer_epoch for _, row, _ in wanted],
        firsts=[row.first_us for _, row, _ in wanted],
        places=[place for _, _, place in wanted],
    )
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for one in rows:
        if one.start is not None:
            found[one.number][one.place] = one.start
    return found


def _finding(one: _Hanging, starts: Mapping[str, int], settings: HangingTransaction.Thresholds) -> Finding:
    row, heir = one.row, one.heir
    places = ", ".join(row.partitions[:3]) + (" and more" if len(row.partitions) > 3 else "")
    summary = (
        f"Transaction of {row.transactional_id} (producer {row.producer_id} epoch {row.producer_epoch}, client "
        f"{row.client_id or '?'} at {row.client or '?'}) {one.open_for}, with {pluralize(row.records, 'record')} in "
        f"{places or 'no partition yet'}{one.last_seen}. {one.why}."
    )
    known = {} if one.state == "resolved" else starts
    topics = {place.rpartition("-")[0] for place in row.partitions}
    only = row.partitions[0].rpartition("-")[2] if len(row.partitions) == 1 else ""
    evidence = [row.first_exchange_id, row.end_exchange_id, heir.exchange_id if heir else None]
    return Finding(
        rule=HangingTransaction.name, severity="warning" if one.state == "resolved" else "critical",
        subject=row.transactional_id, state=one.state, cluster=row.cluster,
        topic=topics.pop() if len(topics) == 1 else None, partition=int(only) if only.isdigit() else None,
        group_id=None, first_us=row.first_us, last_us=one.until_us, summary=summary,
        advice=ADVICE.format(commands=by_hand(row.partitions, known, row.transactional_id)),
        evidence=[each for each in evidence if each][: settings.max_evidence],
        details={
            "transactional_id": row.transactional_id, "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch, "client_id": row.client_id, "address": row.client,
            "partitions": list(row.partitions), "first_offsets": dict(starts), "records": row.records,
            "timeout_us": one.timeout_us, "age_us": one.until_us - row.first_us,
            "silent_us": one.until_us - row.last_us, "usual_us": one.usual_us,
            "came_back_as": heir.transactional_id if heir else None,
            **({"known_until_us": one.until_us} if one.state == "unknown" and one.unheard_us is None else {}),
            **({"coordinator_unheard_us": one.unheard_us} if one.unheard_us is not None else {}),
            "enough_us": min(one.until_us, row.last_us + int(settings.hanging_seconds * 1_000_000)),
        },
    )  # fmt: skip
