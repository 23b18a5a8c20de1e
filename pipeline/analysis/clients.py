"""Which software speaks to the brokers, in which versions, and whether Kafka 4 still understands it: ``gold.clients``.

Clients of MongoDB are beside those of Kafka, by the name of their application; they state no versions of commands.
The inventory is small, so it is merged in plain Python: unions, minima and maxima, which do not depend on an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa

from decoder.kafka.schema.releases import is_removed, refused_by, releases
from decoder.kafka.schema.table import api_keys
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.fit import schema_of, table_of
from pipeline.analysis.tables import ADDRESS, Row, Some, Tables
from pipeline.lake.arrow import arrow_type
from pipeline.tables import CLIENTS, Column

_COLUMNS = (
    "cluster", "client_id", "client_ip", "software", "api_versions", "oldest_versions", "breaks_on_kafka_4",
    "removed_versions", "first_us", "last_us", "protocol",
)  # fmt: skip
"""Of :func:`_inventory_row`."""
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
        keys = api_keys()
        return sorted((api, version) for api, version in self.versions if is_removed(keys.get(api, -1), version))

    def oldest(self) -> list[tuple[str, int]]:
        """The lowest version of each api."""
        lowest: dict[str, int] = {}
        for api, version in self.versions:
            lowest[api] = min(version, lowest.get(api, version))
        return sorted(lowest.items())


Inventory = dict[tuple[str, str, str], Client]
"""By cluster, client_id and address."""


def refused(api_versions: Iterable[str]) -> dict[str, list[str]]:
    """By Kafka release, oldest first, which of these request versions its brokers no longer answer; all releases.

    Args:
        api_versions: e.g. ``Fetch v4``, as in ``gold.clients``. Those that only brokers send are left out: they become
            new with the upgrade.
    """
    keys = api_keys()
    found: dict[str, list[str]] = {release: [] for release in releases()}
    newest = next(reversed(found))
    for api, version in sorted(map(_parse_version, api_versions)):
        key = keys.get(api, -1)
        by = refused_by(key, version)
        if newest in by and not is_removed(key, version):
            continue  # brokers among themselves
        for release in by:
            found[release].append(f"{api} v{version}")
    return found


_HELD_TIMES = "epoch_us(first_ts) AS first_us, epoch_us(last_ts) AS last_us"
_SEEN = "min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us"
_SOFTWARE_IP = "replace(replace(host_of(client), '[', ''), ']', '')"
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


def clients(exchanges: pa.Table, states: pa.Table, commands: pa.Table, catalog: ClusterCatalog) -> pa.Table:
    """Rows of ``gold.clients`` from rows of ``silver.exchanges``, ``state_events`` and ``mongo_commands``."""
    return with_sightings(schema_of(CLIENTS).empty_table(), sightings(exchanges, states, commands), catalog)


SIGHTING = tuple(
    Column(name, kind, "")
    for name, kind in (
        ("server", "string"), ("client_id", "string"), ("client_ip", "string"), ("api_name", "string"),
        ("api_version", "int"), ("software", "string"), ("protocol", "string"), ("first_us", "bigint"),
        ("last_us", "bigint"),
    )
)  # fmt: skip
"""What :func:`sightings` gives."""


def sightings(exchanges: Some, states: Some, commands: Some) -> pa.Table:
    """Which client was seen with which api and version, or software, and when: rows of ``SIGHTING``."""
    tables = Tables({"exchanges": exchanges, "states": states, "commands": commands})
    try:
        found = tables.table(_SIGHTINGS)
    finally:
        tables.close()
    return pa.table({c.name: found.column(c.name).cast(arrow_type(c.type)) for c in SIGHTING})


def with_sightings(held: pa.Table, seen: pa.Table, catalog: ClusterCatalog) -> pa.Table:
    """Rows of ``gold.clients``, those that it held and what was seen since together.

    Args:
        held: rows of ``gold.clients``.
        seen: what :func:`sightings` gives.
        catalog: clusters; ``held`` may lack some of them.
    """
    before: Inventory = {}
    tables = Tables({"held": held, "seen": seen})
    try:
        for row in tables.rows(f"SELECT *, {_HELD_TIMES} FROM held"):
            known = _put(before, (row.cluster, row.client_id, row.client_ip), row)
            known.software.update(row.software)
            known.versions.update(map(_parse_version, row.api_versions))
        after = _resolved(before, catalog)
        for row in tables.rows("SELECT * FROM seen"):
            _take(after, row, catalog)
    finally:
        tables.close()
    return table_of((_inventory_row(key, client) for key, client in sorted(after.items(), key=itemgetter(0))), CLIENTS)


def _take(inventory: Inventory, row: Row, catalog: ClusterCatalog) -> None:
    """Add what was seen of a client: an api and version, or its software."""
    client = _put(inventory, (catalog.cluster_at(row.server, row.first_us), row.client_id or "", row.client_ip), row)
    if row.software is not None:
        client.software.add(row.software)
    elif row.api_version is not None:
        client.versions.add((row.api_name, row.api_version))


def _put(inventory: Inventory, key: tuple[str, str, str], seen: Row | Client) -> Client:
    """The client of this key, seen at these times as well."""
    client = inventory.get(key)
    if client is None:
        client = inventory[key] = Client(seen.first_us, seen.last_us, seen.protocol or "kafka")
    client.first_us, client.last_us = min(client.first_us, seen.first_us), max(client.last_us, seen.last_us)
    return client


def _resolved(inventory: Inventory, catalog: ClusterCatalog) -> Inventory:
    """The same, with the clusters whose id was learned since."""
    found: Inventory = {}
    for (cluster, client_id, address_), seen in inventory.items():
        client = _put(found, (catalog.cluster_at(cluster, seen.first_us), client_id, address_), seen)
        client.software |= seen.software
        client.versions |= seen.versions
    return found


def _parse_version(text: str) -> tuple[str, int]:
    """Api and version of ``Fetch v4``."""
    found = _VERSION.fullmatch(text)
    return (found[1], int(found[2])) if found else (text, -1)


def _texts(versions: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{api} v{version}" for api, version in sorted(versions)]


def _inventory_row(key: tuple[str, str, str], client: Client) -> Mapping[str, Any]:
    """The columns of ``gold.clients``, and ``first_us`` and ``last_us``."""
    removed = _texts(client.removed())
    values = (
        *key, sorted(client.software), _texts(client.versions), _texts(client.oldest()), bool(removed), removed,
        client.first_us, client.last_us, client.protocol,
    )  # fmt: skip
    times = {"first_ts": client.first_us, "last_ts": client.last_us}
    return {**dict(zip(_COLUMNS, values, strict=True)), **times}
