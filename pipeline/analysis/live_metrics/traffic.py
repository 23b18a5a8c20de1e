"""Who asks what, how often, and how well it is answered: apis, clients and MongoDB commands in a window."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from decoder.protocols import names_of
from pipeline.analysis.live_metrics.window import Window
from pipeline.analysis.rules.kafka.api_groups import SLOW_BY_DESIGN
from pipeline.analysis.rules.kafka.symptoms import WAITING_APIS
from pipeline.analysis.rules.mongodb.commands import HAS_FAILED, NAMESPACE
from pipeline.analysis.tables import SERVICE_US, Tables

MOST_CLIENTS = 200
"""Listed, those that ask most; a screen shows fewer."""

_BY_API = names_of(lambda protocol: protocol.has_api_latencies)
_WAITS = sorted({*WAITING_APIS, *SLOW_BY_DESIGN})
_IN_WINDOW = "epoch_us(ts) > $first AND epoch_us(ts) <= $last"
_LATENCIES = """
    quantile_disc({took}, 0.5) AS p50_us, quantile_disc({took}, 0.99) AS p99_us, max({took}) AS max_us
"""
_SENT = "sum(coalesce(request_size, 0)::BIGINT + coalesce(response_size, 0))::BIGINT AS bytes"
_DRIVER = "regexp_replace(concat_ws(' ', driver, driver_version), '[|]+$', '')"
"""A library around MongoDB's driver adds its name and version behind a bar, an extension a name only."""
_APIS = f"""
    SELECT protocol, coalesce(api_name, '?') AS name, count(*) AS asked,
        count(*) FILTER (len(coalesce(error_codes, [])) > 0) AS errors,
        count(*) FILTER (status = 'unanswered') AS unanswered, {_SENT},
        {_LATENCIES.format(took="took_us")}, max(latency_us - took_us) AS wait_us,
        bool_or(list_contains({_WAITS}, coalesce(api_key, -1))) AS waits
    FROM (SELECT *, {SERVICE_US} AS took_us FROM exchanges)
    WHERE {_IN_WINDOW} AND list_contains({_BY_API}, protocol)
    GROUP BY ALL ORDER BY asked DESC, protocol, name
"""
_COMMANDS = f"""
    SELECT coalesce(command, '?') AS command, coalesce({NAMESPACE}, '') AS namespace, count(*) AS asked,
        count(*) FILTER ({HAS_FAILED}) AS errors, count(*) FILTER (status = 'unanswered') AS unanswered, {_SENT},
        coalesce(sum(documents_out), 0)::BIGINT AS documents_out,
        {_LATENCIES.format(took="latency_us")},
        bool_or(coalesce(is_awaiting, false)) AS waits
    FROM commands WHERE {_IN_WINDOW} GROUP BY ALL ORDER BY asked DESC, command, namespace
"""
_CLIENTS = f"""
    WITH names AS (
        SELECT connection_id, arg_max(application, exchange_id) AS application,
            arg_max({_DRIVER}, exchange_id) AS driver
        FROM commands WHERE application IS NOT NULL OR driver IS NOT NULL GROUP BY connection_id
    ), software AS (
        SELECT connection_id, arg_max(concat_ws(' ', software_name, software_version), exchange_id) AS software
        FROM states WHERE kind = 'software' GROUP BY connection_id
    ), placed AS (
        SELECT *, CASE WHEN protocol = 'mongodb' THEN application ELSE client_id END AS client,
            coalesce(software, driver) AS library
        FROM exchanges LEFT JOIN names USING (connection_id) LEFT JOIN software USING (connection_id)
        WHERE {_IN_WINDOW}
    ), each AS (
        SELECT protocol, coalesce(client, '') AS client, client_ip AS host, coalesce(api_name, '?') AS api_name,
            count(*) AS asked, count(*) FILTER (len(coalesce(error_codes, [])) > 0) AS errors, {_SENT},
            list(DISTINCT connection_id) AS connections, max(library) AS library
        FROM placed GROUP BY ALL
    )
    SELECT protocol, client, host, sum(asked)::BIGINT AS asked, sum(errors)::BIGINT AS errors,
        sum(bytes)::BIGINT AS bytes, len(list_distinct(flatten(list(connections)))) AS connections,
        arg_max(api_name, (asked, api_name)) AS mostly, coalesce(max(library), '') AS software
    FROM each GROUP BY protocol, client, host ORDER BY asked DESC, client, host, protocol LIMIT {MOST_CLIENTS}
"""


@dataclass(frozen=True, slots=True)
class ApiNow:
    """An api of Kafka (or of a protocol like it) in the window.

    Attributes:
        asked, errors, unanswered: requests; those with an error in the answer; those without the answer that was due.
        bytes: of requests and responses.
        p50_us, p99_us, max_us: service time, µs; None without answers.
        waits: whether answers wait by design: for records, members or replicas.
        wait_us: longest that a request waited before its service began, behind earlier ones of its connection, µs.
    """

    protocol: str
    name: str
    asked: int
    errors: int
    unanswered: int
    bytes: int
    p50_us: int | None
    p99_us: int | None
    max_us: int | None
    waits: bool
    wait_us: int | None = None


@dataclass(frozen=True, slots=True)
class CommandNow:
    """A MongoDB command on a namespace in the window; see ApiNow.

    Attributes:
        namespace: ``database.collection``, the database alone, or empty.
        documents_out: in its replies.
        waits: whether some of them wait by design.
    """

    command: str
    namespace: str
    asked: int
    errors: int
    unanswered: int
    bytes: int
    documents_out: int
    p50_us: int | None
    p99_us: int | None
    max_us: int | None
    waits: bool


@dataclass(frozen=True, slots=True)
class ClientNow:
    """A client on a host in the window.

    Attributes:
        client: client_id, of MongoDB the application; empty if it sends none, or that was not seen.
        mostly: the api that it asks most.
        software: library and version; empty if that was not seen.
    """

    protocol: str
    client: str
    host: str
    asked: int
    errors: int
    bytes: int
    connections: int
    mostly: str
    software: str


@dataclass(frozen=True, slots=True)
class TrafficNow:
    """What was asked in the window, what is asked most first."""

    apis: list[ApiNow]
    commands: list[CommandNow]
    clients: list[ClientNow]


def traffic_now(exchanges: pa.Table, states: pa.Table, commands: pa.Table, window: Window) -> TrafficNow:
    """What is asked and how it is answered.

    Args:
        exchanges, states, commands: rows of ``silver.exchanges``, ``state_events`` and ``mongo_commands``; of a
            connection that two agents saw, one copy.
        window: the span that it is taken over.
    """
    tables = Tables({"exchanges": exchanges, "states": states, "commands": commands})
    span = {"first": window.first_us, "last": window.last_us}
    try:
        return TrafficNow(
            [ApiNow(**row._asdict()) for row in tables.rows(_APIS, **span)],
            [CommandNow(**row._asdict()) for row in tables.rows(_COMMANDS, **span)],
            [ClientNow(**row._asdict()) for row in tables.rows(_CLIENTS, **span)],
        )
    finally:
        tables.close()
