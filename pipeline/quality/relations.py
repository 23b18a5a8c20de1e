"""What tables state of each other: counts that must be equal, each as a query whose rows are compared.

A query gives a row for each subject (a day, a table): what is ``expected``, and what is ``found``. It is written in
what Spark SQL and DuckDB have in common: a lake on this machine is asked by DuckDB, any other by Spark
(:mod:`pipeline.quality.reconcile`). Tables are views named ``schema_table``. ``{since}`` is the first UTC day for which
all tables hold everything, as ``DATE '2026-11-29'``: what is older, maintenance may have dropped from one of them
before the others. ``{before}`` is the day before, that may have a request whose answer is of that day; ``{now_us}``
is the time, µs since the epoch.
"""

from __future__ import annotations

from decoder.protocols import names_of
from pipeline.quality.conformance import CONFORMANCE
from pipeline.quality.landing_relations import LANDING_RELATIONS
from pipeline.quality.model import Relation
from pipeline.tables import (
    API_LATENCY,
    CLIENTS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    FINDINGS,
    FRAMES,
    INCIDENTS,
    LANDING_FILES,
    MONGO_COMMANDS,
    MONGO_MINUTES,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    Table,
)

LONGEST_PAUSE_TIMES = 3
"""A lake is quiet when no file has landed for this many times its longest pause so far."""
VOLUME_DAYS = 7
"""Days before the last whole one that its volume is compared with."""
VOLUME_SHARE = 5
"""A day has few frames if it has less than the typical day divided by this."""


def view_of(table: Table) -> str:
    """The name under which queries know a table."""
    return f"{table.schema}_{table.name}"


_HOUR = "floor(unix_micros({ts}) / 3600000000)"
_COPIED = f"""
    SELECT connection_id, {_HOUR.format(ts="hour")} AS hour_number FROM silver_duplicate_flows
    GROUP BY connection_id, {_HOUR.format(ts="hour")}
"""
_OF_CONNECTION = """
    SELECT exchange_id, connection_id FROM silver_exchanges WHERE "date" >= {before} GROUP BY exchange_id, connection_id
"""


def once(table: str) -> str:
    """The rows of a table, as ``rows_of``, that are of no copy of a connection: FROM and WHERE."""
    joined = "" if table == "silver_exchanges" else f"JOIN ({_OF_CONNECTION}) AS own USING (exchange_id)"
    connection = "rows_of.connection_id" if table == "silver_exchanges" else "own.connection_id"
    return f"""
        FROM {table} AS rows_of {joined}
        LEFT JOIN ({_COPIED}) AS copied
            ON copied.connection_id = {connection} AND copied.hour_number = {_HOUR.format(ts="rows_of.ts")}
        WHERE copied.connection_id IS NULL
    """


_HALVES = """
    WITH halves AS (
        SELECT to_date(request_ts) AS day, 'request' AS direction FROM silver_exchanges
        WHERE request_ts IS NOT NULL AND "date" >= {before}
        UNION ALL
        SELECT to_date(response_ts) AS day, 'response' AS direction FROM silver_exchanges
        WHERE response_ts IS NOT NULL AND "date" >= {before}
        UNION ALL
        SELECT "date" AS day, direction FROM silver_pending_exchanges
    ), paired AS (
        SELECT day, direction, count(*) AS found FROM halves GROUP BY day, direction
    ), frames AS (
        SELECT "date" AS day, direction, count(*) AS expected FROM bronze_frames GROUP BY "date", direction
    )
    SELECT concat(CAST(day AS STRING), ' ', direction, 's') AS subject, coalesce(expected, 0) AS expected,
        coalesce(found, 0) AS found
    FROM frames FULL JOIN paired USING (day, direction) WHERE day >= {since}
"""


def _all_have_exchanges(table: Table) -> str:
    return f"""
        SELECT CAST(stated."date" AS STRING) AS subject, count(*) AS expected, count(known.exchange_id) AS found
        FROM {view_of(table)} AS stated LEFT JOIN (
            SELECT exchange_id FROM silver_exchanges WHERE "date" >= {{before}} GROUP BY exchange_id
        ) AS known ON known.exchange_id = stated.exchange_id
        WHERE stated."date" >= {{since}} GROUP BY stated."date"
    """


def _by_day(counted: str, expected: str) -> str:
    """Two queries that give ``day`` and ``amount``."""
    return f"""
        WITH counted AS ({counted}), wanted AS ({expected})
        SELECT CAST(day AS STRING) AS subject, coalesce(wanted.amount, 0) AS expected,
            coalesce(counted.amount, 0) AS found
        FROM wanted FULL JOIN counted USING (day) WHERE day >= {{since}}
    """


def _members(expected: str, found: str) -> str:
    """Two queries that give ``id``: each id of the first must be in the second."""
    return f"""
        WITH named AS ({expected}), known AS (SELECT DISTINCT id FROM ({found}) AS these)
        SELECT 'all' AS subject, count(*) AS expected, count(known.id) AS found
        FROM named LEFT JOIN known ON known.id = named.id
    """


_BY_API = ", ".join(f"'{name}'" for name in names_of(lambda protocol: protocol.has_api_latencies))
_VOLUME = f"""
    WITH days AS (
        SELECT "date" AS day, count(*) AS frames FROM bronze_frames GROUP BY "date"
    ), numbered AS (
        SELECT day, frames, row_number() OVER (ORDER BY day DESC) AS place FROM days
    ), typical AS (
        SELECT median(frames) AS frames, count(*) AS days FROM numbered WHERE place BETWEEN 3 AND {VOLUME_DAYS + 2}
    )
    SELECT CAST(numbered.day AS STRING) AS subject, numbered.frames AS found,
        CASE WHEN numbered.frames * {VOLUME_SHARE} >= typical.frames THEN numbered.frames
            ELSE CAST(typical.frames AS BIGINT) END AS expected
    FROM numbered, typical WHERE numbered.place = 2 AND typical.days >= 3
"""
"""The last day but one is the last whole one."""
_FRESH = f"""
    WITH files AS (
        SELECT unix_micros(modified_at) AS us FROM ops_landing_files
        WHERE "query" = 'frames' AND coalesce(status, 'read') = 'read'
    ), pauses AS (
        SELECT us, us - lag(us) OVER (ORDER BY us) AS pause FROM files
    ), summed AS (
        SELECT max(us) AS last_us, max(pause) AS longest, count(*) AS files FROM pauses
    )
    SELECT 'minutes since the last file' AS subject, floor(({{now_us}} - last_us) / 60000000) AS found,
        CASE WHEN {{now_us}} - last_us <= {LONGEST_PAUSE_TIMES} * longest THEN floor(({{now_us}} - last_us) / 60000000)
            ELSE floor({LONGEST_PAUSE_TIMES} * longest / 60000000) END AS expected
    FROM summed WHERE files >= 10
"""

RELATIONS = (
    *LANDING_RELATIONS,
    Relation(
        "frames_in_exchanges",
        EXCHANGES,
        "critical",
        "each frame of bronze is half of an exchange, or waits for its other half",
        (FRAMES, EXCHANGES, PENDING_EXCHANGES),
        _HALVES,
        rests_on=("silver",),
    ),
    *(
        Relation(
            "has_exchange",
            table,
            "critical",
            "each row names an exchange of silver.exchanges",
            (table, EXCHANGES),
            _all_have_exchanges(table),
        )
        for table in (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, MONGO_COMMANDS)
    ),
    Relation(
        "commands_as_exchanges",
        MONGO_COMMANDS,
        "critical",
        "each exchange of MongoDB is a command",
        (EXCHANGES, MONGO_COMMANDS),
        _by_day(
            'SELECT "date" AS day, count(*) AS amount FROM silver_mongo_commands GROUP BY "date"',
            'SELECT "date" AS day, count(*) AS amount FROM silver_exchanges '
            "WHERE protocol = 'mongodb' GROUP BY \"date\"",
        ),
        rests_on=("silver",),
    ),
    Relation(
        "events_in_timeline",
        OFFSET_TIMELINE,
        "critical",
        "each offset event, copies left out, is a row of the timeline",
        (OFFSET_EVENTS, OFFSET_TIMELINE, EXCHANGES, DUPLICATE_FLOWS),
        _by_day(
            'SELECT "date" AS day, count(*) AS amount FROM gold_offset_timeline '
            "WHERE kind NOT IN ('txn_applied', 'txn_discarded') GROUP BY \"date\"",
            f'SELECT rows_of."date" AS day, count(*) AS amount {once("silver_offset_events")} GROUP BY rows_of."date"',
        ),
        rests_on=("gold",),
    ),
    Relation(
        "exchanges_in_latency",
        API_LATENCY,
        "critical",
        "each exchange of Kafka, copies left out, counts in its minute",
        (EXCHANGES, API_LATENCY, DUPLICATE_FLOWS),
        _by_day(
            'SELECT "date" AS day, sum(exchanges) AS amount FROM gold_api_latency GROUP BY "date"',
            f"SELECT to_date(rows_of.ts) AS day, count(*) AS amount {once('silver_exchanges')} "
            f"AND rows_of.protocol IN ({_BY_API}) GROUP BY to_date(rows_of.ts)",
        ),
        rests_on=("gold",),
    ),
    Relation(
        "commands_in_minutes",
        MONGO_MINUTES,
        "critical",
        "each command of MongoDB, copies left out, counts in its minute",
        (MONGO_COMMANDS, MONGO_MINUTES, EXCHANGES, DUPLICATE_FLOWS),
        _by_day(
            'SELECT "date" AS day, sum(commands) AS amount FROM gold_mongo_commands GROUP BY "date"',
            f"SELECT to_date(rows_of.ts) AS day, count(*) AS amount {once('silver_mongo_commands')} "
            "GROUP BY to_date(rows_of.ts)",
        ),
        rests_on=("gold",),
    ),
    Relation(
        "root_is_finding",
        INCIDENTS,
        "critical",
        "the root of each incident is a finding",
        (INCIDENTS, FINDINGS),
        _members(
            "SELECT root_id AS id FROM gold_incidents WHERE to_date(first_ts) >= {since}",
            "SELECT finding_id AS id FROM gold_findings",
        ),
    ),
    Relation(
        "members_are_findings",
        INCIDENTS,
        "critical",
        "all that an incident counts as its findings are findings",
        (INCIDENTS, FINDINGS),
        _members(
            "SELECT explode(findings) AS id FROM gold_incidents WHERE to_date(first_ts) >= {since}",
            "SELECT finding_id AS id FROM gold_findings",
        ),
    ),
    Relation(
        "finding_in_incident",
        FINDINGS,
        "critical",
        "each finding is evidence of an incident",
        (INCIDENTS, FINDINGS),
        _members(
            "SELECT concat(incident_id, ' ', finding_id) AS id FROM gold_findings "
            "WHERE incident_id IS NOT NULL AND to_date(last_ts) >= {since}",
            "SELECT concat(incident_id, ' ', finding_id) AS id "
            "FROM (SELECT incident_id, explode(findings) AS finding_id FROM gold_incidents) AS these",
        ),
    ),
    Relation(
        "clients_of_exchanges",
        CLIENTS,
        "critical",
        "each client of the inventory has sent requests",
        (CLIENTS, EXCHANGES),
        _members(
            "SELECT client_ip AS id FROM gold_clients WHERE to_date(last_ts) >= {since}",
            "SELECT client_ip AS id FROM silver_exchanges",
        ),
    ),
    *CONFORMANCE,
    Relation(
        "volume_as_before",
        FRAMES,
        "warning",
        f"the last whole day has at least a {VOLUME_SHARE}th of the frames of a typical one of {VOLUME_DAYS} before",
        (FRAMES,),
        _VOLUME,
    ),
    Relation(
        "landing_goes_on",
        FRAMES,
        "warning",
        f"the last landing file is no older than {LONGEST_PAUSE_TIMES} times the longest pause between two",
        (LANDING_FILES,),
        _FRESH,
    ),
)
"""All of them, in the order of the tables."""
