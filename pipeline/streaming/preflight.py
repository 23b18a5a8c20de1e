"""Whether a command may begin: landing zone and lake are looked at before a JVM starts, which takes ten seconds.

Nor is anything imported for it that takes a second by itself, as the job does.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import no_lake
from pipeline.lake.delta_reader import schema_stated
from pipeline.streaming.storage.lake import Lake, check_lake
from pipeline.streaming.storage.lock import local_lock
from pipeline.tables import TABLES, Table


def check_places(landing: str | Path, lake: str | Path) -> None:
    """Look whether a stream can begin.

    Args:
        landing: root of the landing zone.
        lake: root of the lake, which need not be there.

    Raises:
        UserError: the landing zone or the lake cannot be used, or another job works there.
    """
    from pipeline.streaming.landing.reading import Landing  # noqa: PLC0415 - loads pandas, which other looks need not

    Landing.at(landing)
    place = Lake.at(lake)
    check_lake(place)
    _tables_of(place)
    if place.is_local:
        with local_lock(place):
            pass


def check_made(lake: str | Path, needed: Table | None = None) -> None:
    """Look whether there is a lake that a job can continue with; of one in an object store that shows when it is read.

    Tables and columns that it lacks do not matter: an older release made it, and a job adds them.

    Args:
        lake: its root.
        needed: a table that must be there; None: any but those of ``ops``.

    Raises:
        UserError: there is no lake, a table of it cannot be read or has a column of another type, no job may write to
            it, or this user may not.
    """
    place = Lake.at(lake)
    if place.is_local:
        held = _tables_of(place)
        is_lake = needed.full_name in held if needed else any(TABLES[name].schema != "ops" for name in held)
        if not is_lake:
            raise no_lake(place.root)
    check_lake(place)


def _tables_of(place: Lake) -> frozenset[str]:
    """Full names of the tables that are there, as far as this machine has them; raises if one cannot be read."""
    if not place.is_local or not Path(place.root).is_dir():
        return frozenset()
    return frozenset(name for name, table in TABLES.items() if schema_stated(place.root, table) is not None)
