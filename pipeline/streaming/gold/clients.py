"""Which software speaks to the brokers, in which versions, and whether Kafka 4 still understands it: ``gold.clients``.

The inventory is small: what was seen of clients is gathered wherever rows are read, and merged in this process.
"""

from __future__ import annotations

from pipeline.analysis.clients import SIGHTING, sightings, with_sightings
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.streaming.storage.lake_io import LakeIO, same_rows
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import CLIENTS, EXCHANGES, MONGO_COMMANDS, STATE_EVENTS

_OF_EXCHANGES = (
    "connection_id", "protocol", "ts", "request_ts", "server_ip", "server_port", "client_ip", "client_id", "api_name",
    "api_version",
)  # fmt: skip


def refresh_clients(rows: LakeIO, catalog: ClusterCatalog, since_us: int) -> None:
    """Take in what clients stated from ``since_us`` (µs since the epoch) on."""
    seen = rows.derive(
        lambda tables: sightings(tables["exchanges"], tables["states"], tables["commands"]),
        {
            "exchanges": TableScan.since(EXCHANGES, since_us, columns=_OF_EXCHANGES, once=True),
            "states": TableScan.since(STATE_EVENTS, since_us, kinds=("software",), once=True),
            "commands": TableScan.since(MONGO_COMMANDS, since_us, once=True),
        },
        ("connection_id",),
        SIGHTING,
        streams=True,
    )
    held = rows.read(TableScan(CLIENTS))
    after = with_sightings(held, rows.as_arrow(seen, SIGHTING), catalog)
    if not same_rows(after, held, CLIENTS):
        rows.overwrite(after, CLIENTS)
