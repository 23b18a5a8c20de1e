"""What is walked through: a capture, judged once in memory, or a lake as it is, read only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

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


def open_source(places: Sequence[str], settings: Settings, reading: Reading) -> Source:
    """Open a lake, or read and judge captures.

    Raises:
        UserError: nothing can be read, or nothing was found.
    """
    lakes = [place for place in places if is_lake(place) or "://" in place]
    if not lakes:
        return _judged(places, settings, reading)
    if len(places) > 1:
        raise UserError(f"{lakes[0]} is a lake: name it alone")
    return _held(lakes[0], settings)


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


def _judged(places: Sequence[str], settings: Settings, reading: Reading) -> Source:
    from pipeline.commands.diagnose import read_and_judge, warnings_of  # noqa: PLC0415
    from pipeline.commands.findings import what_was_read  # noqa: PLC0415
    from pipeline.commands.unjudged import why_nothing_was_judged  # noqa: PLC0415

    name = ", ".join(places)
    found, inputs = read_and_judge(
        places, settings, reading.allow_truncated, reading.tls_keylog, reading.tls_embedded_keys,
        "`wirelake open` holds",
    )  # fmt: skip
    unjudged = why_nothing_was_judged(found.looked, inputs.stats, has_findings=bool(found.findings.num_rows))
    read = what_was_read(found, inputs.stats, is_whole=inputs.is_whole)
    connection = connect_tables(found.tables, settings.sql)
    notes = (read, *([unjudged] if unjudged else []), *warnings_of(inputs))
    return Source(name, connection, _whole(connection, name), notes, found.errors)


def _whole(connection: duckdb.DuckDBPyConnection, name: str) -> Scope:
    found = extent(connection)
    if found is None:
        raise UserError(f"{name} holds no Kafka or MongoDB message, so there is nothing to open")
    return Scope(found.first, found.last)
