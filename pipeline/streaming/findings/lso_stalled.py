"""Rules ``lso_stalled`` and ``read_committed_starved``: a transaction stays open, and who gets nothing for that.

Meaning: consumers with isolation level read_committed read up to the last stable offset (LSO) only, which is the first
offset of the oldest open transaction. If its producer died or hangs, they starve while producers write on (KIP-98).
Evidence: fetch answers in which the LSO stays the same for ``lso_stalled_seconds`` while the high watermark grows by
``lso_stalled_records``. The batch at the LSO names the producer; its requests name transactional id and client.
Each consumer that stands there is a finding of its own: those who run it look for its name, not for the producer's.
Advice: see ADVICE and STARVED_ADVICE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.model import Finding, Sources, clock, seconds

NAME = "lso_stalled"
ADVICE = (
    "Look at the producer named here: if it hangs, stop it; its transaction is aborted after transaction.timeout.ms. "
    "If it is gone, start it again with the same transactional.id (which aborts its open transaction), or end it with "
    "`kafka-transactions.sh abort --topic T --partition P --start-offset FIRST_OFFSET`."
)
STARVED = "read_committed_starved"
STARVED_ADVICE = (
    "The consumer is in good health: it may not read past an open transaction. See the finding lso_stalled of the same "
    "partition for the producer that holds it open, and end that transaction. isolation.level=read_uncommitted would "
    "read on, and read what may be aborted."
)
_KEY = ("cluster", "topic", "partition")
_WHO = ("transactional_id", "client_id", "client")
_ENOUGH_TRANSACTIONS = 3
"""Transactions that it takes to know how long they usually are open."""


@dataclass(frozen=True, slots=True)
class Producer:
    """Who holds the transaction open, as far as the wire told."""

    producer_id: int
    epoch: int
    first_offset: int
    since_us: int
    exchange_id: str
    transactional_id: str | None
    client_id: str | None
    address: str | None


def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule. One transaction stalls many partitions: what is asked of them is asked of all at once."""
    candidates = _stalls(sources.events, settings)
    stalls = _last_of_each(candidates)
    if stalls and (usual := _usual_us(sources, stalls)):
        stalls = _last_of_each(_longer(candidates, usual, settings.lso_stalled_ratio))
    if not stalls:
        return []
    places = _places(sources.events.sparkSession, stalls)
    producers, readers = _producers(sources, places), _starved(sources, places)
    found: list[Finding] = []
    for number, stall in enumerate(stalls):
        producer, starved = producers.get(number), readers[number]
        found.append(_finding(stall, producer, starved, settings))
        found += [
            _starving(stall, reader, producer) for reader in starved if reader.fetches >= settings.starved_fetches
        ]
    return found


def _stalls(events: DataFrame, settings: FindingSettings) -> DataFrame:
    """The spans of each partition in which the LSO stays below a growing high watermark."""
    seen = events.where("kind = 'fetched' AND high_watermark IS NOT NULL AND last_stable_offset IS NOT NULL").select(
        *_KEY, "ts", "exchange_id", "ordinal", "high_watermark", "last_stable_offset"
    )
    in_order = Window.partitionBy(*_KEY).orderBy("ts", "exchange_id", "ordinal")
    moved = F.coalesce(F.col("last_stable_offset") != F.lag("last_stable_offset").over(in_order), F.lit(True))
    spans = (
        seen.withColumn("moved", moved.cast("int"))
        .withColumn("span", F.sum("moved").over(in_order))
        .withColumn("last_span", F.max("span").over(Window.partitionBy(*_KEY)))
        .where("high_watermark > last_stable_offset")
        .groupBy(*_KEY, "span", "last_span", F.col("last_stable_offset").alias("lso"))
        .agg(
            F.min("high_watermark").alias("hw_first"),
            F.max("high_watermark").alias("hw_last"),
            F.min(F.unix_micros("ts")).alias("first_us"),
            F.max(F.unix_micros("ts")).alias("last_us"),
            F.max_by("exchange_id", F.struct("ts", "exchange_id")).alias("exchange_id"),
        )
    )
    lasting = (F.col("last_us") - F.col("first_us")) >= int(settings.lso_stalled_seconds * 1_000_000)
    growing = (F.col("hw_last") - F.col("hw_first")) >= settings.lso_stalled_records
    return spans.where(lasting & growing)


def _last_of_each(stalls: DataFrame) -> list[Row]:
    latest = Window.partitionBy(*_KEY).orderBy(F.desc("span"))
    last = stalls.withColumn("n", F.row_number().over(latest)).where("n = 1")
    return list(last.orderBy(*_KEY).collect())


def _longer(stalls: DataFrame, usual: Mapping[tuple[str, str], int], ratio: float) -> DataFrame:
    """Those that last ``ratio`` times as long as transactions there usually (µs, by cluster and partition) do."""
    rows = [(*place, us) for place, us in sorted(usual.items())]
    known = F.broadcast(stalls.sparkSession.createDataFrame(rows, "cluster string, place string, usual bigint"))
    placed = stalls.withColumn("place", F.concat_ws("-", "topic", F.col("partition").cast("string")))
    least = F.coalesce(F.col("usual"), F.lit(0)) * ratio
    return placed.join(known, ["cluster", "place"], "left").where(F.col("last_us") - F.col("first_us") >= least)


def _usual_us(sources: Sources, stalls: Sequence[Row]) -> dict[tuple[str, str], int]:
    """By cluster and partition, the median time that a transaction stays open until it commits, µs, where it is known.

    Sinks that write exactly once hold a transaction open from one checkpoint to the next: seconds, or minutes.
    """
    wanted = sources.transactions.sparkSession.createDataFrame(
        [_place(s) for s in stalls], "cluster string, place string"
    )
    rows = (
        sources.transactions.where("state IN ('committing', 'committed') AND duration_us IS NOT NULL")
        .select("cluster", F.explode("partitions").alias("place"), "duration_us")
        .join(F.broadcast(wanted), ["cluster", "place"])
        .groupBy("cluster", "place")
        .agg(F.count("*").alias("times"), F.percentile_approx("duration_us", 0.5).alias("usual"))
        .collect()
    )
    return {(row.cluster, row.place): row.usual for row in rows if row.times >= _ENOUGH_TRANSACTIONS}


def _place(stall: Row) -> tuple[str, str]:
    return stall.cluster, f"{stall.topic}-{stall.partition}"


def _places(spark: SparkSession, stalls: Sequence[Row]) -> DataFrame:
    """The stalls as rows to join with, each by its ``number``."""
    rows = [(n, s.cluster, s.topic, s.partition, s.lso, s.first_us, s.last_us) for n, s in enumerate(stalls)]
    schema = (
        "number int, cluster string, topic string, partition int, lso bigint, stall_first_us bigint, "
        "stall_last_us bigint"
    )
    return F.broadcast(spark.createDataFrame(rows, schema))


def _producers(sources: Sources, places: DataFrame) -> dict[int, Producer]:
    """By the stall's number the producer of the transactional batch that begins at the LSO, where one was seen."""
    at_lso = (F.col("base_offset") <= F.col("lso")) & (F.col("last_offset") >= F.col("lso"))
    row = F.struct(
        "cluster", "producer_id", "producer_epoch", "base_offset", F.unix_micros("ts").alias("us"), "exchange_id"
    )
    # The Produce request first: it tells the time of writing.
    order = F.struct(F.col("source") != "produce", "ts", "exchange_id")
    batches = (
        sources.batches.where(F.col("is_transactional") & ~F.col("is_control"))
        .join(places, list(_KEY))
        .where(at_lso)
        .groupBy("number")
        .agg(F.min_by(row, order).alias("batch"))
        .select("number", "batch.*")
        .collect()
    )
    known = _introduced(sources, batches) if batches else {}
    found: dict[int, Producer] = {}
    for batch in batches:
        who = known.get(batch.number)
        found[batch.number] = Producer(
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            first_offset=batch.base_offset,
            since_us=batch.us,
            exchange_id=batch.exchange_id,
            transactional_id=who.transactional_id if who else None,
            client_id=who.client_id if who else None,
            address=who.client if who else None,
        )
    return found


def _introduced(sources: Sources, batches: Sequence[Row]) -> dict[int, Row]:
    """By the stall's number, transactional id and client of a batch's producer.

    From its Produce requests, InitProducerId or AddPartitionsToTxn.
    """
    wanted = F.broadcast(
        sources.events.sparkSession.createDataFrame(
            [(b.number, b.cluster, b.producer_id, b.exchange_id) for b in batches],
            "number int, its_cluster string, pid bigint, its_exchange string",
        )
    )
    is_its_own = (F.col("cluster") == F.col("its_cluster")) & (F.col("producer_id") == F.col("pid"))
    produced = (
        sources.events.where("kind = 'produced' AND transactional_id IS NOT NULL")
        .join(wanted, is_its_own)
        .select(
            "number", *_WHO, "ts", (F.col("exchange_id") == F.col("its_exchange")).alias("is_it")
        )
    )  # fmt: skip
    named = (
        sources.states.where("kind IN ('txn_init', 'txn_add_partition') AND transactional_id IS NOT NULL")
        .join(wanted, is_its_own)
        .select("number", *_WHO, "ts", F.lit(False).alias("is_it"))
    )
    first = F.min_by(F.struct(*_WHO), F.struct(~F.col("is_it"), "ts", "client"))
    rows = produced.unionByName(named).groupBy("number").agg(first.alias("who")).collect()
    return {row.number: row.who for row in rows}


def _starved(sources: Sources, places: DataFrame) -> Mapping[int, list[Row]]:
    """By the stall's number the read_committed consumers that stand at the LSO during it."""
    during = F.unix_micros("ts").between(F.col("stall_first_us"), F.col("stall_last_us"))
    waiting = F.coalesce("next_offset", "offset") >= F.col("lso")
    fetched = F.col("kind") == "fetched"
    readers = (
        sources.events.where(fetched & (F.col("isolation_level") == "read_committed"))
        .join(places, list(_KEY))
        .where(during & waiting)
    )
    groups = (
        sources.timeline.where(fetched & (F.col("group_id") != ""))
        .join(places, list(_KEY))
        .select("number", "exchange_id", F.col("group_id").alias("reader_group"))
    )
    rows = (
        readers.join(groups, ["number", "exchange_id"], "left")
        .groupBy("number", "client_id", F.regexp_replace("client", r":\d+$", "").alias("host"), "reader_group")
        .agg(
            F.count("*").alias("fetches"),
            F.max("exchange_id").alias("exchange_id"),
            F.min(F.unix_micros("ts")).alias("first_us"),
            F.max(F.unix_micros("ts")).alias("last_us"),
        )
        .orderBy("number", "client_id", "host", "reader_group")
        .collect()
    )
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.number].append(row)
    return found


def _finding(stall: Row, producer: Producer | None, starved: Sequence[Row], settings: FindingSettings) -> Finding:
    place = f"{stall.topic}-{stall.partition}"
    is_over = stall.span < stall.last_span
    grown = stall.hw_last - stall.hw_first
    age = stall.last_us - (min(producer.since_us, stall.first_us) if producer else stall.first_us)
    parts = [
        f"The last stable offset of {place} stood at {stall.lso} for {seconds(stall.last_us - stall.first_us)} "
        f"(from {clock(stall.first_us)} to {clock(stall.last_us)} UTC) while the high watermark grew by {grown} "
        f"to {stall.hw_last}",
        _blame(producer, age),
        _readers(starved, stall.hw_last - stall.lso),
    ]
    if is_over:
        parts.append("It has moved on since")
    evidence = [producer.exchange_id] if producer else []
    evidence += [row.exchange_id for row in starved] or [stall.exchange_id]
    return Finding(
        rule=NAME, severity="warning" if is_over else "critical", subject=place,
        state="closed" if is_over else "open", cluster=stall.cluster, topic=stall.topic, partition=stall.partition,
        group_id=None, first_us=stall.first_us, last_us=stall.last_us,
        summary=". ".join(part for part in parts if part) + ".", advice=ADVICE,
        evidence=evidence[: settings.max_evidence],
        details={
            "last_stable_offset": stall.lso, "high_watermark": stall.hw_last, "high_watermark_growth": grown,
            "producer_id": producer.producer_id if producer else None,
            "producer_epoch": producer.epoch if producer else None,
            "transactional_id": producer.transactional_id if producer else None,
            "client_id": producer.client_id if producer else None,
            "address": producer.address if producer else None,
            "first_offset": producer.first_offset if producer else stall.lso, "age_seconds": age / 1_000_000,
            "starved_consumers": [
                {"client_id": r.client_id, "host": r.host, "group_id": r.reader_group, "fetches": r.fetches}
                for r in starved
            ],
            "resolved": is_over, "enough_us": stall.first_us + int(settings.lso_stalled_seconds * 1_000_000),
        },
    )  # fmt: skip


def _starving(stall: Row, reader: Row, producer: Producer | None) -> Finding:
    place = f"{stall.topic}-{stall.partition}"
    who = f"{reader.client_id or 'A client without client_id'} at {reader.host}"
    group = f" (group {reader.reader_group})" if reader.reader_group else ""
    name = (producer.transactional_id or f"producer {producer.producer_id}") if producer else "an unknown producer"
    is_over = stall.span < stall.last_span
    summary = (
        f"{who}{group} gets no records of {place}: it reads only what is committed, and fetched {reader.fetches} times "
        f"from {clock(reader.first_us)} to {clock(reader.last_us)} UTC at the last stable offset {stall.lso}, behind "
        f"which a transaction of {name} is open. {stall.hw_last - stall.lso} offsets wait."
        f"{' It has moved on since.' if is_over else ''}"
    )
    return Finding(
        rule=STARVED, severity="warning" if is_over else "critical",
        subject=f"{reader.reader_group or reader.client_id or '?'}/{place}", state="closed" if is_over else "open",
        cluster=stall.cluster, topic=stall.topic, partition=stall.partition, group_id=reader.reader_group,
        first_us=reader.first_us, last_us=reader.last_us, summary=summary, advice=STARVED_ADVICE,
        evidence=[reader.exchange_id],
        details={"last_stable_offset": stall.lso, "high_watermark": stall.hw_last, "fetches": reader.fetches},
    )  # fmt: skip


def _blame(producer: Producer | None, age_us: int) -> str:
    if producer is None:
        return "A transaction is open there; its first batch was not captured, so its producer is not known"
    name = f"transactional id {producer.transactional_id}, " if producer.transactional_id else ""
    client = f", client {producer.client_id or '?'} at {producer.address}" if producer.address else ""
    return (
        f"Producer {producer.producer_id} epoch {producer.epoch} ({name}first offset {producer.first_offset}{client}) "
        f"has held its transaction open for {seconds(age_us)}"
    )


def _readers(starved: Sequence[Row], withheld: int) -> str:
    if not starved:
        return ""
    names = sorted({f"{r.client_id}{f' (group {r.reader_group})' if r.reader_group else ''}" for r in starved})
    return f"{', '.join(names)} read only committed records and miss {withheld} offsets"
