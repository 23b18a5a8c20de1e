"""The one registry of tables: schema, comments, keys, partitioning and constraints of everything in the lake.

DDL, the landing files' schema, quality checks and documentation derive from it. Types are Spark SQL type names;
this package imports neither Spark nor Arrow. Times are UTC; offsets are positions in the Kafka log.
"""

from __future__ import annotations

from pipeline.tables.bronze import FRAME_ID_SQL, FRAMES, GAP_LANDING_COLUMNS, GAPS, LANDING_COLUMNS
from pipeline.tables.gold import (
    API_LATENCY,
    CLIENTS,
    FINDINGS,
    INCIDENTS,
    LOG_STATE,
    MONGO_MINUTES,
    OFFSET_SNAPSHOTS,
    OFFSET_STATE,
    OFFSET_TIMELINE,
)
from pipeline.tables.model import (
    DERIVED_DAYS,
    FRAMES_DAYS,
    LAYOUT,
    LAYOUT_PROPERTY,
    OPS_DAYS,
    UNLIKE,
    WRITTEN_BY_DIAGNOSE,
    Column,
    Table,
    optional,
    quoted,
    required,
)
from pipeline.tables.ops import (
    CHANGE_LOG,
    INCIDENT_NOTES,
    INTERNAL_ERRORS,
    LANDING_FILES,
    QUALITY_RESULTS,
    STREAM_PROGRESS,
)
from pipeline.tables.silver import (
    BODY_NAMES,
    DUPLICATE_FLOWS,
    EXCHANGES,
    EXCHANGES_WITH_BODIES,
    OFFSET_EVENTS,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
)
from pipeline.tables.silver_connections import CONNECTIONS, HOWS
from pipeline.tables.silver_state import (
    ASSIGNMENTS,
    BROKERS,
    FETCH_SESSIONS,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    TOPICS,
    TRANSACTIONS,
)

__all__ = [
    "API_LATENCY",
    "ASSIGNMENTS",
    "BODY_NAMES",
    "BROKERS",
    "CHANGE_LOG",
    "CLIENTS",
    "CONNECTIONS",
    "DERIVED_DAYS",
    "DUPLICATE_FLOWS",
    "EXCHANGES",
    "EXCHANGES_WITH_BODIES",
    "FETCH_SESSIONS",
    "FINDINGS",
    "FRAMES",
    "FRAMES_DAYS",
    "FRAME_ID_SQL",
    "GAPS",
    "GAP_LANDING_COLUMNS",
    "HOWS",
    "INCIDENTS",
    "INCIDENT_NOTES",
    "INTERNAL_ERRORS",
    "LANDING_COLUMNS",
    "LANDING_FILES",
    "LAYOUT",
    "LAYOUT_PROPERTY",
    "LOG_STATE",
    "MONGO_COMMANDS",
    "MONGO_HANDSHAKES",
    "MONGO_MINUTES",
    "OFFSET_EVENTS",
    "OFFSET_SNAPSHOTS",
    "OFFSET_STATE",
    "OFFSET_TIMELINE",
    "OPS_DAYS",
    "PENDING_EXCHANGES",
    "QUALITY_RESULTS",
    "RECORD_BATCHES",
    "STATE_EVENTS",
    "STREAM_PROGRESS",
    "TABLES",
    "TOPICS",
    "TRANSACTIONS",
    "UNLIKE",
    "WRITTEN_BY_DIAGNOSE",
    "Column",
    "Table",
    "optional",
    "quoted",
    "required",
]

TABLES: dict[str, Table] = {
    t.full_name: t
    for t in (
        FRAMES,
        GAPS,
        EXCHANGES,
        PENDING_EXCHANGES,
        DUPLICATE_FLOWS,
        CONNECTIONS,
        OFFSET_EVENTS,
        RECORD_BATCHES,
        STATE_EVENTS,
        ASSIGNMENTS,
        TRANSACTIONS,
        FETCH_SESSIONS,
        TOPICS,
        BROKERS,
        MONGO_HANDSHAKES,
        MONGO_COMMANDS,
        OFFSET_TIMELINE,
        OFFSET_SNAPSHOTS,
        API_LATENCY,
        MONGO_MINUTES,
        CLIENTS,
        FINDINGS,
        INCIDENTS,
        CHANGE_LOG,
        STREAM_PROGRESS,
        LANDING_FILES,
        INTERNAL_ERRORS,
        QUALITY_RESULTS,
        INCIDENT_NOTES,
    )
}
"""By full name, in the order in which they follow from each other."""
