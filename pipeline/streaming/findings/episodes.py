"""Which symptoms belong together? One pass over ``silver.exchanges``: symptoms of one subject, cut where they pause.

Only exchanges that can hold a symptom are parsed; the others are told apart by columns and a search in their text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.symptoms import (
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    PRODUCE,
    WAITING_APIS,
    Exchange,
    symptoms,
)
from pipeline.streaming.silver.facts import Facts
from pipeline.streaming.silver.offset_events import address

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "server string, client_id string, client_ip string, ts timestamp, exchange_id string, rule string, "
    "subject string, what string, topic string, partition int, group_id string, value double"
)
_NAMES_KEPT = 50
_BY_HOST = ("commit_rejected", "zombie_member")
"""Rules that count each host apart: members of one group often share a client id, the default of their library."""
_STORM = "rebalance_storm"


@dataclass(frozen=True, slots=True)
class Episode:
    """Symptoms of one rule and subject without a long pause between them. Times are µs since the epoch.

    Attributes:
        kinds, names: how many distinct ``what`` its symptoms have, and which, at most fifty.
        callers, clients: how many showed it, and who, ``client_id at address``, at most fifty.
        total, peak: sum and maximum of their values.
        evidence, times_us: exchange ids and times of the first of them, as many as ``max_evidence``.
    """

    rule: str
    cluster: str
    server: str
    subject: str
    times: int
    first_us: int
    last_us: int
    total: float
    peak: float
    kinds: int
    names: tuple[str, ...]
    callers: int
    clients: tuple[str, ...]
    topic: str | None
    partition: int | None
    group_id: str | None
    evidence: tuple[str, ...]
    times_us: tuple[int, ...]

    @property
    def span_us(self) -> int:
        """From the first symptom to the last."""
        return self.last_us - self.first_us

    def with_another(self, other: Episode) -> Episode:
        """This one and what others showed meanwhile."""
        names, clients = sorted({*self.names, *other.names}), sorted({*self.clients, *other.clients})
        shown = sorted(zip((*self.times_us, *other.times_us), (*self.evidence, *other.evidence), strict=True))
        kept = shown[: max(len(self.evidence), len(other.evidence))]
        return replace(
            self, times=self.times + other.times, first_us=min(self.first_us, other.first_us),
            total=self.total + other.total, peak=max(self.peak, other.peak),
            kinds=max(self.kinds, other.kinds, len(names)), names=tuple(names[:_NAMES_KEPT]),
            callers=max(self.callers, other.callers, len(clients)), clients=tuple(clients[:_NAMES_KEPT]),
            evidence=tuple(one for _, one in kept), times_us=tuple(us for us, _ in kept),
        )  # fmt: skip


def exchange_symptoms(exchanges: DataFrame, gaps: DataFrame, settings: FindingSettings) -> DataFrame:
    """The symptoms of Kafka exchanges, a row each.

    Args:
        exchanges: rows of ``silver.exchanges``.
        gaps: rows of ``bronze.gaps``: where frames were lost, nothing follows from a missing answer.
        settings: the latency that is a symptom.
    """
    return _found(exchanges.where(_may_tell(settings)), gaps, int(settings.slow_seconds * 1_000_000))


def collect_episodes(found: DataFrame, facts: Facts, settings: FindingSettings) -> list[Episode]:
    """All episodes, those of one subject in order of time.

    Args:
        found: symptoms, as :func:`exchange_symptoms` gives them.
        facts: clusters as known now.
        settings: the pause that ends an episode.
    """
    of_subject, in_order = ("server", "rule", "subject", "host"), ("ts", "exchange_id", "what", "partition")
    by_subject = Window.partitionBy(*of_subject).orderBy(*in_order)
    # What a group did all day is no storm, but one may begin in it.
    longest = F.when(F.col("rule") == _STORM, 2 * settings.storm_interval_seconds).otherwise(
        settings.episode_pause_seconds
    )
    pause = F.unix_micros("ts") - F.lag(F.unix_micros("ts")).over(by_subject) > longest * 1_000_000
    numbered = (
        found.withColumn("host", F.when(F.col("rule").isin(*_BY_HOST), F.col("client_ip")))
        .withColumn("new", F.coalesce(pause, F.lit(True)).cast("int"))
        .withColumn("episode", F.sum("new").over(by_subject))
    )
    in_episode = Window.partitionBy(*of_subject, "episode").orderBy(*in_order)
    ranked = numbered.withColumn("n", F.row_number().over(in_episode))
    micros = F.unix_micros("ts")
    who = F.concat(F.coalesce("client_id", F.lit("a client without client_id")), F.lit(" at "), "client_ip")
    rows = (
        ranked.groupBy(*of_subject, "episode")
        .agg(
            F.count("*").alias("times"),
            F.min(micros).alias("first_us"),
            F.max(micros).alias("last_us"),
            F.sum("value").alias("total"),
            F.max("value").alias("peak"),
            F.sort_array(F.collect_set("what")).alias("names"),
            F.sort_array(F.collect_set(who)).alias("clients"),
            F.max("topic").alias("topic"),
            F.max("partition").alias("partition"),
            F.max("group_id").alias("group_id"),
            F.sort_array(
                F.collect_list(
                    F.when(F.col("n") <= settings.max_evidence, F.struct("n", "exchange_id", micros.alias("us")))
                )
            ).alias("evidence"),
        )
        .withColumns(
            {"kinds": F.size("names"), "callers": F.size("clients")}
            | {name: F.slice(name, 1, _NAMES_KEPT) for name in ("names", "clients")}
        )
        .orderBy(*of_subject, "episode")
        .collect()
    )
    return [_episode(row, facts) for row in rows]


def _may_tell(settings: FindingSettings) -> Column:
    """Exchanges in which there may be a symptom."""
    api = F.col("api_key")
    has_error = F.size("error_codes") > 0
    is_slow = (F.col("latency_us") >= int(settings.slow_seconds * 1_000_000)) & ~api.isin(*WAITING_APIS)
    is_odd = (F.col("status") != "paired") | F.col("request_status").isin("unknown_api", "unknown_version")
    throttle = '"throttleTimeMs":'
    is_throttled = F.col("response_body").contains(throttle) & ~F.col("response_body").contains(f"{throttle}0")
    opens_session = (api == FETCH) & F.col("request_body").rlike(r'"sessionEpoch":0\b')
    unacknowledged = (api == PRODUCE) & F.col("response_body").isNull()
    joins = api.isin(JOIN_GROUP, INIT_PRODUCER_ID, CREATE_TOPICS, DELETE_TOPICS) | (
        (api == CONSUMER_GROUP_HEARTBEAT) & F.col("response_body").contains('"assignment":{')
    )
    hints = (has_error, is_slow, is_odd, is_throttled, opens_session, unacknowledged, joins)
    any_hint = F.lit(False)
    for hint in hints:
        any_hint = any_hint | F.coalesce(hint, F.lit(False))
    return (F.col("protocol") == "kafka") & any_hint


def _found(exchanges: DataFrame, gaps: DataFrame, slow_us: int) -> DataFrame:
    lost = gaps.select("connection_id", F.lit(True).alias("lossy")).distinct()
    inputs = exchanges.join(F.broadcast(lost), "connection_id", "left").where(
        "lossy IS NULL OR status NOT IN ('unanswered', 'orphan_response')"
    )
    inputs = inputs.select(
        address("server_ip", "server_port").alias("server"),
        "client_id",
        "client_ip",
        "ts",
        "exchange_id",
        "api_key",
        "api_name",
        "api_version",
        "status",
        "request_status",
        "latency_us",
        "error_codes",
        "request_body",
        "response_body",
    )
    names = [column.split()[0] for column in _COLUMNS.split(", ")]

    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd  # noqa: PLC0415 - on the worker only

        for batch in batches:
            rows = [
                (row.server, row.client_id, row.client_ip, row.ts, row.exchange_id, *astuple(s))
                for row in batch.itertuples(index=False)
                for s in symptoms(_exchange(row), slow_us)
            ]
            yield pd.DataFrame(rows, columns=names, dtype=object)

    return inputs.mapInPandas(run, _COLUMNS)


def whole_number(value: Any) -> int | None:
    """An integer of a pandas column, in which null may have become NaN or pandas.NA."""
    is_known = isinstance(value, Real) and not math.isnan(value)
    return int(value) if is_known else None


def _exchange(row: Any) -> Exchange:
    request, response = ({} if text is None else orjson.loads(text) for text in (row.request_body, row.response_body))
    key = whole_number(row.api_key)
    codes = () if row.error_codes is None else tuple(int(code) for code in row.error_codes)
    return Exchange(
        -1 if key is None else key, row.api_name or f"api {key}", whole_number(row.api_version), row.client_id,
        row.server, row.status, row.request_status, whole_number(row.latency_us), codes, request, response,
    )  # fmt: skip


def _episode(row: Row, facts: Facts) -> Episode:
    return Episode(
        rule=row.rule, cluster=facts.cluster_at(row.server, row.last_us), server=row.server, subject=row.subject,
        times=row.times, first_us=row.first_us, last_us=row.last_us, total=row.total, peak=row.peak,
        kinds=row.kinds, names=tuple(name for name in row.names if name), callers=row.callers,
        clients=tuple(row.clients), topic=row.topic, partition=row.partition, group_id=row.group_id,
        evidence=tuple(e.exchange_id for e in row.evidence), times_us=tuple(e.us for e in row.evidence),
    )  # fmt: skip
