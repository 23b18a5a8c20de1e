"""Opens the log of a table of a lake by delta-rs, wherever the lake is; and why it cannot be, in a sentence."""

from __future__ import annotations

from deltalake import DeltaTable

from pipeline.errors import UserError
from pipeline.lake.path_checks import why_unreadable
from pipeline.lake.s3 import S3Place
from pipeline.lake.store_advice import advised, lines_of
from pipeline.tables import Table

LOG = "_delta_log"
_MOST_OF_REASON = 300
"""Characters of what delta-rs says: of a log that lacks a file it prints all that it knows of its neighbours."""
_RETRIES = {"max_retries": "3", "retry_timeout": "30s", "connect_timeout": "10s"}
"""By default a store that does not answer is asked for three minutes."""


def delta_table(lake: str, table: Table) -> DeltaTable:
    """A table as delta-rs opens it.

    Args:
        lake: the lake's folder or URL.
        table: one of :mod:`pipeline.tables`.

    Raises:
        TableNotFoundError: it is not there.
        DeltaError, OSError, ValueError: it cannot be read.
        UserError: the URL cannot be used.
    """
    place = S3Place.of(lake)
    if place is None:
        return DeltaTable(f"{lake}/{table.path}")
    return DeltaTable(f"{place.for_delta}/{table.path}", storage_options=_RETRIES | place.delta_options)


def unreadable(lake: str, table: Table, error: Exception) -> UserError:
    """In one line: delta-rs adds to some errors where in its code they came from.

    The system's own reason comes as a tree in colours, whose last line is the reason.
    """
    s3 = S3Place.of(lake)
    if s3 is not None:
        return UserError(f"cannot read {s3.for_delta}/{table.path}: {advised(str(error))}")
    place = f"{lake}/{table.path}"
    if isinstance(error, PermissionError) or "ermission denied" in str(error):
        refusing = why_unreadable(f"{place}/{LOG}")
        return UserError(refusing or f"cannot read {place}: permission denied. Run as the lake's owner")
    lines = lines_of(str(error))
    reason = lines[-1 if isinstance(error, OSError) else 0] if lines else type(error).__name__
    shown = reason if len(reason) <= _MOST_OF_REASON else f"{reason[:_MOST_OF_REASON]}…"
    return UserError(f"cannot read {place}: {shown}")
