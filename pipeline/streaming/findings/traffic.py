"""Who uses which api, in which version, how often and how fast? One pass over ``silver.exchanges``."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.facts import Facts
from pipeline.streaming.findings.symptoms import API_VERSIONS
from pipeline.streaming.offset_events import address


@dataclass(frozen=True, slots=True)
class Traffic:
    """Exchanges of one client (by client id and host) with one server, of one api and version.

    Attributes:
        cluster: of the server, at the last of them.
        first_us, last_us: µs since the epoch.
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
    p95_us: int | None
    evidence: str


def collect_traffic(exchanges: DataFrame, facts: Facts) -> list[Traffic]:
    """The Kafka traffic, in a fixed order."""
    key = ("server", "client_id", "client_ip", "api_key", "api_name", "api_version")
    micros = F.unix_micros(F.coalesce("response_ts", "ts"))
    rows = (
        exchanges.where("protocol = 'kafka' AND api_key IS NOT NULL")
        .withColumn("server", address("server_ip", "server_port"))
        .groupBy(*key)
        .agg(
            F.count("*").alias("times"),
            F.min(F.unix_micros("ts")).alias("first_us"),
            F.max(micros).alias("last_us"),
            F.percentile_approx("latency_us", 0.95).alias("p95_us"),
            F.min_by("exchange_id", F.struct("ts", "exchange_id")).alias("evidence"),
        )
        .orderBy(*key)
        .collect()
    )
    return [Traffic(facts.cluster_at(row.server, row.last_us), **row.asDict()) for row in rows]


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
