"""What another program has set on a table of a lake: what no reader here would read right is refused by all of them.

Spark reads deletion vectors and column mapping; DuckDB and delta-rs, which answer the page, ``sql`` and small jobs, do
not, or read nulls without a word. So a table is accepted by all or by none of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from pipeline.errors import UserError
from pipeline.humanize import listed
from pipeline.tables import Table

ACCEPTED = frozenset({"timestampNtz", "columnMapping"})
"""What a table may demand of its readers: neither changes what its files mean, if columns have their own names."""
_PHYSICAL = "delta.columnMapping.physicalName"
OWN: Mapping[str, str] = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.enableVariantShredding": "false",
    # A stream that was down for a week continues where it stopped, and replays are still recognised as such.
    "delta.logRetentionDuration": "interval 30 days",
    "delta.setTransactionRetentionDuration": "interval 365 days",
}
"""Properties that each table has from its begin."""
_ABSENT = {"delta.appendOnly": "false"}
"""Properties that no table has; with another value, jobs could not replace rows."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What the log of a table states of how it is to be read.

    Attributes:
        features: that a reader must know; none below version 3 of Delta's protocol.
        properties: of the table.
        physical: name of each column, and its name in files.
    """

    features: frozenset[str]
    properties: Mapping[str, str | None]
    physical: Mapping[str, str]

    @classmethod
    def by_schema(cls, features: Iterable[str], properties: Mapping[str, str | None], schema: str) -> Stated:
        """That of a log as another reader has it; ``schema``: the table's, in the JSON of Delta's log."""
        fields = json.loads(schema)["fields"]
        return cls(frozenset(features), properties, _physical_names((one["name"], one["metadata"]) for one in fields))

    @classmethod
    def of(cls, held: DeltaTable) -> Stated:
        """That of a table as delta-rs opens it."""
        physical = _physical_names((field.name, field.metadata) for field in held.schema().fields)
        return cls(frozenset(held.protocol().reader_features or ()), held.metadata().configuration, physical)

    @property
    def maps_columns(self) -> bool:
        """Whether files have other names of columns."""
        mode = self.properties.get("delta.columnMapping.mode") or "none"
        return mode != "none" and any(name != physical for name, physical in self.physical.items())


def _physical_names(fields: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Name of each column and its name in files; ``fields``: name and metadata of each."""
    return {name: str(metadata.get(_PHYSICAL, name)) for name, metadata in fields}


def demand_readable(lake: str, table: Table, stated: Stated) -> None:
    """Refuse a table that not all readers would read as what it is.

    Args:
        lake: the lake's folder or URL.
        table: which one.
        stated: by its log.

    Raises:
        UserError: another program has given it features that change what its files mean.
    """
    place = f"{lake}/{table.path}"
    if stated.maps_columns:
        others = {name: physical for name, physical in sorted(stated.physical.items()) if name != physical}
        what = f"its files have other names of its columns {listed(list(others))} (column mapping)"
        raise _refused(place, what, _undo_names(place, table, stated, others))
    strange = sorted(stated.features - ACCEPTED)
    if "deletionVectors" in strange:
        raise _refused(place, "it has deletion vectors", _undo_vectors(place))
    if strange:
        raise _refused(place, f"it demands {listed(strange)} of its readers", _drop_features(place, strange))


def _undo_names(place: str, table: Table, stated: Stated, others: Mapping[str, str]) -> list[str]:
    """Statements after which files have the names of the columns: of ours that were renamed, and of others."""
    ours = {
        name: physical
        for name, physical in others.items()
        if physical in table.column_names and physical not in stated.physical
    }
    undo = [f"ALTER TABLE delta.`{place}` RENAME COLUMN `{name}` TO `{physical}`" for name, physical in ours.items()]
    return undo if len(ours) == len(others) else [*undo, _set(place, "delta.columnMapping.mode", "none")]


def _set(place: str, name: str, value: str) -> str:
    return f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('{name}' = '{value}')"


def _undo_vectors(place: str) -> list[str]:
    """Statements for Spark SQL that take deletion vectors out of a table; each may be repeated."""
    return [
        _set(place, "delta.enableDeletionVectors", "false"),
        f"REORG TABLE delta.`{place}` APPLY (PURGE)",
        *_drop_features(place, ["deletionVectors"]),
    ]


def _drop_features(place: str, features: Iterable[str]) -> list[str]:
    """Statements for Spark SQL that take features out of a table."""
    return [f"ALTER TABLE delta.`{place}` DROP FEATURE {feature}" for feature in features]


def _refused(place: str, what: str, undo: Collection[str]) -> UserError:
    statements = "; ".join(undo)
    return UserError(f"cannot read {place}: {what}, which another program has set. Undo it by Spark SQL: {statements}")


def set_back(place: str, changed: Mapping[str, str]) -> str:
    """Statements for Spark SQL that give properties of a table their values again."""
    return "; ".join(_set(place, name, value) for name, value in sorted(changed.items()))


def drifted(properties: Mapping[str, str | None]) -> dict[str, str]:
    """Properties that another program has changed, each with the value that it had.

    A lake of an older release may lack some.

    Args:
        properties: of the table, as its log states them.
    """
    changed = {name: value for name, value in OWN.items() if (properties.get(name) or value) != value}
    return changed | {name: value for name, value in _ABSENT.items() if (properties.get(name) or value) != value}
