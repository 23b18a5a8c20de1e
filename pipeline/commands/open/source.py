"""What is walked through: a capture, judged into files of a private folder, or a lake as it is, read only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from pipeline.config.settings import Settings
from pipeline.dashboard.queries.scope import Scope, extent, rows_if_there
from pipeline.dashboard.sql import connect_readable, connect_tables
from pipeline.dashboard.web.format import seen
from pipeline.errors import UserError
from pipeline.lake.path_checks import is_lake

if TYPE_CHECKING:
    from pipeline.analysis.safety.guard import InternalError


@dataclass(frozen=True, slots=True)
class Source:
    """What is walked through.

    Attributes:
        name: as the user named it.
        connection: to its tables.
        scope: all of its time.
        notes: sentences on what was read; the first says how much, the others are warnings.
        errors: steps that failed while it was judged.
    """

    name: str
    connection: duckdb.DuckDBPyConnection
    scope: Scope
    notes: tuple[str, ...]
    errors: tuple[InternalError, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How captures are read; see ``wirelake diagnose``."""

    allow_truncated: bool | None = None
    tls_keylog: str | None = None
    tls_embedded_keys: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """Notes on captures whose tables are in a folder.

    Attributes:
        notes, errors: as of :class:`Source`.
    """

    notes: tuple[str, ...]
    errors: tuple[InternalError, ...]


def open_source(places: Sequence[str], settings: Settings, reading: Reading, folder: Path) -> Source:
    """Open a lake, or read and judge captures.

    Args:
        places: captures, a landing zone, or one lake.
        settings: of reading, judging and asking.
        reading: how captures are read.
        folder: an empty one, for the tables of captures.

    Raises:
        UserError: nothing can be read, or nothing was found.
    """
    if is_held(places):
        return _held(places[0], settings)
    return opened(places, judge_into(folder, places, settings, reading), folder, settings)


def is_held(places: Sequence[str]) -> bool:
    """Whether a lake is named.

    Raises:
        UserError: something else is named beside it.
    """
    lakes = [place for place in places if is_lake(place) or "://" in place]
    if lakes and len(places) > 1:
        raise UserError(f"{lakes[0]} is a lake: name it alone")
    return bool(lakes)


def _held(lake: str, settings: Settings) -> Source:
    from pipeline.commands.unjudged import demand_judged, errors_of_lake  # noqa: PLC0415 - by delta-rs

    found = connect_readable(lake, settings.sql)
    scope = _whole(found.connection, lake)
    notes = [f"Seen {seen(scope.start, scope.end)}.", *found.unreadable.values()]
    try:
        demand_judged(lake, has_findings=bool(rows_if_there(found.connection, "SELECT 1 FROM gold.findings LIMIT 1")))
        errors = tuple(errors_of_lake(lake))
    except UserError as error:  # what can be read is shown all the same
        notes.append(str(error))
        errors = ()
    return Source(lake, found.connection, scope, tuple(dict.fromkeys(notes)), errors)


def judge_into(folder: Path, places: Sequence[str], settings: Settings, reading: Reading) -> Judged:
    """Read and judge captures, and leave their tables in a folder.

    Raises:
        UserError: nothing can be read, or there is no room.
    """
    from pipeline.analysis.safety.guard import noting  # noqa: PLC0415 - loads DuckDB and Arrow
    from pipeline.commands.diagnose import read_and_judge, warnings_of  # noqa: PLC0415
    from pipeline.commands.findings import what_was_read  # noqa: PLC0415
    from pipeline.commands.unjudged import why_nothing_was_judged  # noqa: PLC0415

    with noting() as noted:
        found, inputs = read_and_judge(
            places, settings, reading.allow_truncated, reading.tls_keylog, reading.tls_embedded_keys,
            "while it reads, `wirelake open` holds",
        )  # fmt: skip
    unjudged = why_nothing_was_judged(found.looked, inputs.stats, has_findings=bool(found.findings.num_rows))
    read = what_was_read(found, inputs.stats, is_whole=inputs.is_whole)
    try:
        for name, rows in found.tables.items():
            with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot write tables: {reason}; name a folder with more room by the variable TMPDIR"
        ) from error
    notes = (read, *([unjudged] if unjudged else []), *warnings_of(inputs))
    return Judged(notes, (*found.errors, *noted.errors))


def opened(places: Sequence[str], judged: Judged, folder: Path, settings: Settings) -> Source:
    """What was judged into a folder; its tables are mapped, so that memory holds only what is asked for."""
    name = ", ".join(places)
    tables = {file.name: pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in folder.iterdir()}
    connection = connect_tables(tables, settings.sql)
    return Source(name, connection, _whole(connection, name), judged.notes, judged.errors)


def _whole(connection: duckdb.DuckDBPyConnection, name: str) -> Scope:
    found = extent(connection)
    if found is None:
        raise UserError(f"{name} holds no Kafka or MongoDB message, so there is nothing to open")
    return Scope(found.first, found.last)
