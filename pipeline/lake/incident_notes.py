"""``ops.incident_notes`` in a lake of this machine: read and added to by delta-rs, by whoever may write there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from pipeline.errors import UserError
from pipeline.lake.arrow import arrow_schema
from pipeline.lake.delta_reader import read_table
from pipeline.lake.delta_writer import create_table, writer_properties
from pipeline.tables import INCIDENT_NOTES

MOST_LETTERS = 4000
"""Of a text, and of a name: what is longer is cut."""


def read_notes(lake: str) -> list[dict[str, Any]]:
    """All rows; none where the lake has no such table, or it cannot be read: incidents are shown all the same."""
    try:
        found = read_table(lake, INCIDENT_NOTES)
    except UserError:
        return []
    return [] if found is None else list(found.to_pylist())


def may_note(lake: str) -> bool:
    """Whether this process may add a row: the lake is a folder of this machine in which it may write."""
    if "://" in lake:
        return False
    table = Path(lake) / INCIDENT_NOTES.path
    log = table / "_delta_log"
    if log.is_dir():
        return all(os.access(folder, os.W_OK | os.X_OK) for folder in (table, log))
    there = next((folder for folder in (table.parent, Path(lake)) if folder.is_dir()), None)
    return there is not None and os.access(there, os.W_OK | os.X_OK)


def add_note(lake: str, row: Mapping[str, Any]) -> None:
    """Add a row, and make the table if it is not there.

    Args:
        lake: the lake's folder.
        row: ``incident_id``, ``kind``, ``noted_at``, and as far as known ``text``, ``author``, ``muted_until``.

    Raises:
        UserError: it cannot be written.
    """
    given = {name: row.get(name) for name in INCIDENT_NOTES.column_names}
    for name in ("text", "author"):
        given[name] = (given[name] or "").strip()[:MOST_LETTERS] or None
    schema = arrow_schema(INCIDENT_NOTES.columns)
    place = str(Path(lake) / INCIDENT_NOTES.path)
    try:
        if not DeltaTable.is_deltatable(place):
            create_table(place, INCIDENT_NOTES)
        write_deltalake(
            place, pa.Table.from_pylist([given], schema), mode="append",
            writer_properties=writer_properties(INCIDENT_NOTES),
        )  # fmt: skip
    except (OSError, DeltaError) as error:
        raise UserError(f"cannot write the note into {place}: {error}") from error


def note(incident_id: str, kind: str, noted_at: datetime, **more: Any) -> dict[str, Any]:
    """A row of ``ops.incident_notes``; ``more``: ``text``, ``author``, ``muted_until``."""
    return {"incident_id": incident_id, "kind": kind, "noted_at": noted_at, **more}
