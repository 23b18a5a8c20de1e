"""What the stream has not done yet: until then tables cannot state the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from pipeline.config.settings import MaintenanceSettings
from pipeline.lake.path_checks import is_of_diagnose
from pipeline.quality.model import Relation, Rests
from pipeline.quality.suites import LAYERS
from pipeline.streaming.storage.checkpoints import has_ended_batches, has_read_all
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import CHANGE_LOG, FRAMES, Table


def waits_for(lake: Lake) -> set[Rests]:
    """What is under way, or cannot be known: relations that rest on it are not judged.

    A lake of ``diagnose`` was written all at once, out of no landing zone. In an object store it is not looked.
    """
    if lake.is_local and is_of_diagnose(lake.root):
        return {"landing"}
    silver = has_read_all(lake, "exchanges", FRAMES)
    found: set[Rests] = set()
    if not has_ended_batches(lake, "frames"):
        found.add("landing")
    if not silver:
        found.add("silver")
    if not (silver and has_read_all(lake, "gold", CHANGE_LOG)):
        found.add("gold")
    return found


def whole_since(
    relation: Relation, newest: date | None, frames_kept_from: date | None, settings: MaintenanceSettings
) -> date | None:
    """The first UTC day for which all tables of a relation hold everything; None: they hold all that they ever did.

    Args:
        relation: which one.
        newest: day of the newest frame, from which ages count; None: there is none.
        frames_kept_from: the day before which maintenance has dropped frames.
        settings: how long it keeps rows.
    """
    dropped = list(_dropped(relation.reads, newest, settings))
    if FRAMES in relation.reads and frames_kept_from is not None:
        dropped.append(frames_kept_from)
    return max(dropped) + timedelta(days=1) if dropped else None  # an answer may come on the day after


def _dropped(tables: Iterable[Table], newest: date | None, settings: MaintenanceSettings) -> Iterable[date]:
    for table in tables:
        if newest is None or table.schema not in LAYERS:
            continue
        if (days := settings.days_kept(table)) is not None:
            yield newest - timedelta(days=days)
