"""How requests were answered, minute by minute: ``gold.api_latency`` and ``gold.mongo_commands`` from silver.

What the rows hold is :mod:`pipeline.analysis.minutes`' to say; a refresh recomputes whole minutes.
"""

from __future__ import annotations

from pipeline.analysis.minutes import MINUTE_US, api_latency, mongo_minutes
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import API_LATENCY, EXCHANGES, MONGO_COMMANDS, MONGO_MINUTES

_OF_EXCHANGES = (
    "exchange_id", "protocol", "ts", "server_ip", "server_port", "api_key", "api_name", "api_version", "client_id",
    "status", "error_codes", "request_size", "response_size", "latency_us", "service_us", "response_flags",
)  # fmt: skip
_MINUTE = "date_trunc('minute', ts)"


def refresh_latency(rows: LakeIO, since_us: int) -> None:
    """Recompute the minutes of Kafka's apis from that of ``since_us`` (µs since the epoch) on."""
    minute = since_us - since_us % MINUTE_US
    exchanges = TableScan.since(EXCHANGES, minute, columns=(*_OF_EXCHANGES, "date"), once=True)
    made = rows.derive(
        lambda tables: api_latency(tables["exchanges"]),
        {"exchanges": exchanges},
        (_MINUTE, "server_ip", "server_port"),
        API_LATENCY,
        streams=True,
    )
    rows.replace_since(made, API_LATENCY, "minute", minute)


def refresh_mongo_minutes(rows: LakeIO, since_us: int) -> None:
    """Recompute the minutes of MongoDB's commands likewise."""
    minute = since_us - since_us % MINUTE_US
    made = rows.derive(
        lambda tables: mongo_minutes(tables["commands"]),
        {"commands": TableScan.since(MONGO_COMMANDS, minute, once=True)},
        (_MINUTE, "server"),
        MONGO_MINUTES,
        streams=True,
    )
    rows.replace_since(made, MONGO_MINUTES, "minute", minute)
