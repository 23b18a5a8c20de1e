"""Who uses which api, in which version, how often and how fast: one pass over ``silver.exchanges``."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from decoder.fields import integer, items, parsed
from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.tables import ADDRESS, SERVICE_US, Tables


@dataclass(frozen=True, slots=True)
class Traffic:
    """Exchanges of one client (by client id and host) with one server, of one api and version.

    Attributes:
        cluster: of the server, at the last of them.
        first_us, last_us: µs since the epoch.
        answered_us: when the last answer came that did not refuse the version; None without one.
        p95_us: 95th percentile of the service time, µs; None without answers.
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


def collect_traffic(tables: Tables, catalog: ClusterCatalog) -> list[Traffic]:
    """The Kafka traffic, in a fixed order."""
    rows = tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, api_key, api_name, api_version,
            count(*) AS times,
            min(epoch_us(ts)) AS first_us,
            max(epoch_us(coalesce(response_ts, ts))) AS last_us,
            max(CASE WHEN NOT coalesce(list_contains(error_codes, {KafkaError.UNSUPPORTED_VERSION}), false)
                THEN epoch_us(response_ts) END) AS answered_us,
            list({SERVICE_US} ORDER BY {SERVICE_US}) FILTER ({SERVICE_US} IS NOT NULL) AS latencies,
            arg_min(exchange_id, (ts, exchange_id)) AS evidence
        FROM exchanges WHERE protocol = 'kafka' AND api_key IS NOT NULL
        GROUP BY ALL ORDER BY server, client_id, client_ip, api_key, api_name, api_version
    """)
    return [
        Traffic(
            catalog.cluster_at(row.server, row.last_us), row.server, row.client_id, row.client_ip, row.api_key,
            row.api_name, row.api_version, row.times, row.first_us, row.last_us, row.answered_us,
            nearest_rank(row.latencies, 0.95), row.evidence,
        )
        for row in rows
    ]  # fmt: skip


def nearest_rank(ascending: Sequence[int] | None, part: float) -> int | None:
    """The smallest value that at least this part of all do not exceed; None without any."""
    return ascending[max(math.ceil(part * len(ascending)) - 1, 0)] if ascending else None


def fetches_during(tables: Tables, episodes: Sequence[Episode]) -> dict[Episode, int]:
    """How often the client that is an episode's subject fetched from its servers from its first symptom to its last."""
    if not episodes:
        return {}
    wanted = {(server, e.subject) for e in episodes for server in e.servers}
    times: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, coalesce(nullif(client_id, ''), '?') AS subject, epoch_us(ts) AS us
        FROM exchanges WHERE protocol = 'kafka' AND api_key = {ApiKey.FETCH} ORDER BY us
    """):
        if (row.server, row.subject) in wanted:
            times[row.server, row.subject].append(row.us)

    def between(episode: Episode) -> int:
        of_client = [times[server, episode.subject] for server in episode.servers]
        return sum(bisect_right(us, episode.last_us) - bisect_left(us, episode.first_us) for us in of_client)

    return {episode: between(episode) for episode in episodes}


def newest_versions(tables: Tables, catalog: ClusterCatalog) -> dict[str, dict[int, int]]:
    """By cluster and api key the newest version that a broker of it offers, as answers to ApiVersions state."""
    answers = tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, response_body, max(epoch_us(ts)) AS last_us
        FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {ApiKey.API_VERSIONS} AND contains(response_body, '"apiKey":')
        GROUP BY ALL
    """)
    newest: dict[str, dict[int, int]] = defaultdict(dict)
    for row in answers:
        offered = newest[catalog.cluster_at(row.server, row.last_us)]
        for api in items(parsed(row.response_body), "apiKeys"):
            api_key, version = integer(api, "apiKey"), integer(api, "maxVersion")
            if api_key is not None and version is not None:
                offered[api_key] = max(version, offered.get(api_key, 0))
    return newest
