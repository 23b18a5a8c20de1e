"""Who uses which api, in which version, how often and how fast? One pass over ``silver.exchanges``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.findings.episodes import Episode
from pipeline.streaming.findings.symptoms import API_VERSIONS, FETCH, UNSUPPORTED_VERSION
from pipeline.streaming.silver.facts import Facts
from pipeline.streaming.silver.offset_events import address


@dataclass(frozen=True, slots=True)
class Traffic:
    """Exchanges of one client (by client id and host) with one server, of one api and version.

    Attributes:
        cluster: of the server, at the last of them.
        first_us, last_us: µs since the epoch.
        answered_us: when the last answer came that did not refuse the version; None without one.
        p95_us: 95th percentile of the latency, µs; None without answers.
        evidence: exchange id of the first.
    """

    cluster: str
    server: str
    client_id: str | None
    client_ip: str
    api_key: int
    api_name: str | None
    api_version: int | None
    times: int
    first_us: int
    last_us: int
    answered_us: int | None
    p95_us: int | None
    evidence: str


def collect_traffic(exchanges: DataFrame, facts: Facts) -> list[Traffic]:
    """The Kafka traffic, in a fixed order."""
    key = ("server", "client_id", "client_ip", "api_key", "api_name", "api_version")
    micros = F.unix_micros(F.coalesce("response_ts", "ts"))
    is_refused = F.coalesce(F.array_contains("error_codes", UNSUPPORTED_VERSION), F.lit(False))
    rows = (
        exchanges.where("protocol = 'kafka' AND api_key IS NOT NULL")
        .withColumn("server", address("server_ip", "server_port"))
        .groupBy(*key)
        .agg(
            F.count("*").alias("times"),
            F.min(F.unix_micros("ts")).alias("first_us"),
            F.max(micros).alias("last_us"),
            F.max(F.when(~is_refused, F.unix_micros("response_ts"))).alias("answered_us"),
            F.percentile_approx("latency_us", 0.95).alias("p95_us"),
            F.min_by("exchange_id", F.struct("ts", "exchange_id")).alias("evidence"),
        )
        .orderBy(*key)
        .collect()
    )
    return [Traffic(facts.cluster_at(row.server, row.last_us), **row.asDict()) for row in rows]


def fetches_during(exchanges: DataFrame, episodes: Sequence[Episode]) -> dict[Episode, int]:
    """How often the client that is an episode's subject fetched from its server from its first symptom to its last."""
    if not episodes:
        return {}
    rows = [(n, e.server, e.subject, e.first_us, e.last_us) for n, e in enumerate(episodes)]
    wanted = exchanges.sparkSession.createDataFrame(
        rows, "number int, server string, subject string, from_us bigint, until_us bigint"
    )
    fetches = exchanges.where((F.col("protocol") == "kafka") & (F.col("api_key") == FETCH)).select(
        address("server_ip", "server_port").alias("server"),
        F.coalesce(F.nullif("client_id", F.lit("")), F.lit("?")).alias("subject"),
        F.unix_micros("ts").alias("us"),
    )
    counted = (
        fetches.join(F.broadcast(wanted), ["server", "subject"])
        .where(F.col("us").between(F.col("from_us"), F.col("until_us")))
        .groupBy("number")
        .agg(F.count("*").alias("times"))
        .collect()
    )
    times = {row.number: row.times for row in counted}
    return {episode: times.get(number, 0) for number, episode in enumerate(episodes)}


def newest_versions(exchanges: DataFrame, facts: Facts) -> dict[str, dict[int, int]]:
    """By cluster and api key the newest version that a broker of it offers, as answers to ApiVersions say."""
    answers = (
        exchanges.where((F.col("protocol") == "kafka") & (F.col("api_key") == API_VERSIONS))
        .where(F.col("response_body").contains('"apiKey":'))
        .groupBy(address("server_ip", "server_port").alias("server"), "response_body")
        .agg(F.max(F.unix_micros("ts")).alias("last_us"))
        .collect()
    )
    newest: dict[str, dict[int, int]] = defaultdict(dict)
    for row in answers:
        offered = newest[facts.cluster_at(row.server, row.last_us)]
        for api in orjson.loads(row.response_body).get("apiKeys") or []:
            offered[api["apiKey"]] = max(api["maxVersion"], offered.get(api["apiKey"], 0))
    return newest
