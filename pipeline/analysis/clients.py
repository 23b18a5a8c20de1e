"""Which software speaks to the brokers, in which versions, and does Kafka 4 still understand it? ``gold.clients``.

Clients of MongoDB stand beside those of Kafka, by the name of their application; they state no versions of commands.
The inventory is small, so it is merged in plain Python: unions, minima and maxima, which do not depend on an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from decoder.kafka.schema.releases import is_removed
from decoder.kafka.schema.table import api_names
from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import table_of
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.tables import CLIENTS

COLUMNS = (
    "cluster", "client_id", "client_ip", "software", "api_versions", "oldest_versions", "breaks_on_kafka_4",
    "removed_versions", "first_us", "last_us", "protocol",
)  # fmt: skip
"""Of :func:`inventory_row`."""
_VERSION = re.compile(r"(.+) v(\d+)")


@dataclass(slots=True)
class Client:
    """What is known of a client; ``versions`` are (api name, version), times µs since the epoch."""

    first_us: int
    last_us: int
    protocol: str = "kafka"
    software: set[str] = field(default_factory=set)
    versions: set[tuple[str, int]] = field(default_factory=set)

    def removed(self) -> list[tuple[str, int]]:
        """The request versions among them that the newest Kafka refuses."""
        keys = {name: key for key, name in api_names().items()}
        return sorted((api, version) for api, version in self.versions if is_removed(keys.get(api, -1), version))

    def oldest(self) -> list[tuple[str, int]]:
        """The lowest version of each api."""
        lowest: dict[str, int] = {}
        for api, version in self.versions:
            lowest[api] = min(version, lowest.get(api, version))
        return sorted(lowest.items())


Inventory = dict[tuple[str, str, str], Client]
"""By cluster, client_id and address."""


_SEEN = "min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us"
_SOFTWARE_IP = r"replace(replace(regexp_replace(client, ':\d+$', ''), '[', ''), ']', '')"
_SIGHTINGS = f"""
    SELECT {ADDRESS["server"]} AS server, client_id, client_ip, api_name, api_version, NULL AS software,
        'kafka' AS protocol, {_SEEN}
    FROM exchanges WHERE protocol = 'kafka' AND request_ts IS NOT NULL AND api_name IS NOT NULL GROUP BY ALL
    UNION ALL BY NAME
    SELECT server, client_id, {_SOFTWARE_IP} AS client_ip, concat_ws(' ', software_name, software_version) AS software,
        'kafka' AS protocol, {_SEEN}
    FROM states WHERE kind = 'software' GROUP BY ALL
    UNION ALL BY NAME
    SELECT server, application AS client_id, client_ip,
        regexp_replace(concat_ws(' ', driver, driver_version), '[|]+$', '') AS software, 'mongodb' AS protocol, {_SEEN}
    FROM commands WHERE coalesce(driver, application) IS NOT NULL GROUP BY ALL
"""
"""A library around MongoDB's driver adds its name and version behind a bar, an extension a name only."""


def clients(exchanges: pa.Table, states: pa.Table, commands: pa.Table, facts: Facts) -> pa.Table:
    """Rows of ``gold.clients`` from rows of ``silver.exchanges``, ``state_events`` and ``mongo_commands``."""
    tables = Tables({"exchanges": exchanges, "states": states, "commands": commands})
    try:
        rows = tables.rows(_SIGHTINGS)
    finally:
        tables.close()
    found: Inventory = {}
    for row in rows:
        take(found, row, facts)
    return table_of((inventory_row(key, client) for key, client in sorted(found.items(), key=str)), CLIENTS)


def take(inventory: Inventory, row: Row, facts: Facts) -> None:
    """Add what was seen of a client: an api and version, or its software."""
    client = put(inventory, (facts.cluster_at(row.server, row.first_us), row.client_id or "", row.client_ip), row)
    if row.software is not None:
        client.software.add(row.software)
    elif row.api_version is not None:
        client.versions.add((row.api_name, row.api_version))


def put(inventory: Inventory, key: tuple[str, str, str], seen: Row | Client) -> Client:
    """The client of this key, seen at these times as well."""
    client = inventory.setdefault(key, Client(seen.first_us, seen.last_us, seen.protocol or "kafka"))
    client.first_us, client.last_us = min(client.first_us, seen.first_us), max(client.last_us, seen.last_us)
    return client


def resolved(inventory: Inventory, facts: Facts) -> Inventory:
    """The same, with the clusters whose id was learned since."""
    found: Inventory = {}
    for (cluster, client_id, address_), seen in inventory.items():
        client = put(found, (facts.cluster_at(cluster, seen.first_us), client_id, address_), seen)
        client.software |= seen.software
        client.versions |= seen.versions
    return found


def parse_version(text: str) -> tuple[str, int]:
    """Api and version of ``Fetch v4``."""
    found = _VERSION.fullmatch(text)
    return (found[1], int(found[2])) if found else (text, -1)


def _texts(versions: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{api} v{version}" for api, version in sorted(versions)]


def inventory_row(key: tuple[str, str, str], client: Client) -> Mapping[str, Any]:
    """The columns of ``gold.clients``, and ``first_us`` and ``last_us``."""
    removed = _texts(client.removed())
    values = (
        *key, sorted(client.software), _texts(client.versions), _texts(client.oldest()), bool(removed), removed,
        client.first_us, client.last_us, client.protocol,
    )  # fmt: skip
    times = {"first_ts": client.first_us, "last_ts": client.last_us}
    return {**dict(zip(COLUMNS, values, strict=True)), **times}
