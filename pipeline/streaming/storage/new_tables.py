"""Makes an empty table on this machine: the first commit of its log, without a Spark job.

A job of Spark for each table would take longer than reading a small capture. What is written is what Delta's protocol
asks of a first commit (`PROTOCOL.md` of delta-io/delta: Protocol Evolution, Change Metadata, Version Checksum File);
tests hold it against what Delta itself writes of the same table.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql.types import StructField, StructType

from pipeline.tables import LAYOUT, LAYOUT_PROPERTY, Table

_FIRST = "00000000000000000000"
_VERSIONS = {"minReaderVersion": 1, "minWriterVersion": 2}
_WITH_CHECKS = {**_VERSIONS, "minWriterVersion": 3}
"""Writers of version 3 hold to CHECK constraints. Table features, which others need not know, are not used."""


def write_first_commit(folder: Path, table: Table, types: StructType, properties: Mapping[str, str]) -> None:
    """Make an empty table, unless somebody else has just made it.

    Args:
        folder: where it is created.
        table: its columns, comments and partitions.
        types: of its columns, as Spark names them.
        properties: of the table, constraints among them.

    Raises:
        OSError: it cannot be written.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    metadata = _metadata(table, types, properties)
    info = {"timestamp": metadata["createdTime"], "operation": "CREATE TABLE", "operationParameters": {}}
    protocol = _WITH_CHECKS if table.checks else _VERSIONS
    actions: list[dict[str, Any]] = [{"commitInfo": info}, {"metaData": metadata}, {"protocol": protocol}]
    if _put(log / f"{_FIRST}.json", "".join(f"{json.dumps(action)}\n" for action in actions)):
        counts = {"tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1}
        content = {
            "metadata": metadata,
            "protocol": protocol,
            "domainMetadata": [],
            "setTransactions": [],
            "allFiles": [],
        }
        _put(log / f"{_FIRST}.crc", json.dumps({**counts, **content}))


def is_complete(folder: Path, table: Table) -> bool:
    """Whether a table is there with all its columns and constraints, in our layout; no, also if it cannot be read."""
    try:
        held = DeltaTable(folder)
        columns, properties = {field.name for field in held.schema().fields}, held.metadata().configuration
    except (DeltaError, OSError, ValueError):
        return False
    return (
        properties.get(LAYOUT_PROPERTY) == str(LAYOUT)
        and columns >= set(table.column_names)
        and all(
            without_spaces(properties.get(f"delta.constraints.{name}") or "") == without_spaces(condition)
            for name, condition in table.checks.items()
        )
    )


def without_spaces(condition: str) -> str:
    """A condition as it compares with one that Spark has rewritten, with spaces of its own."""
    return "".join(condition.split())


def _metadata(table: Table, types: StructType, properties: Mapping[str, str]) -> dict[str, Any]:
    fields = [
        StructField(column.name, field.dataType, column.nullable, {"comment": column.comment})
        for column, field in zip(table.columns, types.fields, strict=True)
    ]
    return {
        "id": str(uuid.uuid4()),
        "description": table.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": StructType(fields).json(),
        "partitionColumns": list(table.partition_by),
        "configuration": dict(properties),
        "createdTime": int(time.time() * 1000),
    }


def _put(path: Path, text: str) -> bool:
    """Write a file as a whole. False: it was there already."""
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        return False
    finally:
        Path(name).unlink()
    return True
