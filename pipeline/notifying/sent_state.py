"""What was sent and what is still to be sent, kept in a file: a restart loses nothing and sends nothing twice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from pipeline.embedded.incident_changes import IncidentChange, ReportedIncidents
from pipeline.errors import UserError
from pipeline.lake.former_layout import current_row
from pipeline.notifying.message_formats import COLUMNS
from pipeline.tables import INCIDENTS

VERSION = 1
_KEPT = (*COLUMNS, "page", "root_id", "findings")
"""What of an incident is needed to know it again, to compare it, and to report that it is over when it is gone."""
_TIMES = ("first_ts", "last_ts")
MOST_WAITING = 1_000
"""Messages that wait for a receiver that does not take them; of more the oldest are dropped."""


class Sent:
    """Incidents as they were sent last, and messages that wait.

    Args:
        file: where that is kept; made if it is not there.

    Attributes:
        waiting: messages that are still to be sent, in order.

    Raises:
        UserError: the file cannot be read, or is no such file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._incidents = ReportedIncidents()
        self.waiting: list[Any] = []
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}") from error
        try:
            kept = orjson.loads(content)
            if kept["version"] != VERSION:
                raise ValueError(kept["version"])
            self._incidents.restore([(_restored(one["row"]), [*one["roots"]]) for one in kept["incidents"]])
            self.waiting = [*kept["waiting"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{file} is damaged or of another release; remove it, and what is open is sent once more"
            ) from error

    def changes(self, rows: Iterable[Mapping[str, Any]]) -> Sequence[IncidentChange]:
        """What has changed; what is over when it is seen first is none of it."""
        found = self._incidents.changes(rows)
        return [one for one in found if one.kind != "new" or one.row["state"] != "resolved"]

    def wait(self, messages: Iterable[Any]) -> int:
        """Let messages wait for being sent; gives how many older ones are dropped for them."""
        self.waiting += messages
        dropped = max(len(self.waiting) - MOST_WAITING, 0)
        del self.waiting[:dropped]
        return dropped

    def save(self) -> None:
        """Keep it. Raises UserError if the file cannot be written."""
        incidents = [
            {"row": {name: row.get(name) for name in _KEPT}, "roots": roots}
            for row, roots in self._incidents.reported()
        ]
        partial = self._file.with_name(f".{self._file.name}.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(orjson.dumps({"version": VERSION, "incidents": incidents, "waiting": self.waiting}))
            partial.replace(self._file)
        except OSError as error:
            raise UserError(f"{self._file} cannot be written: {error.strerror}; name another by --state") from error


def _restored(kept: Mapping[str, Any]) -> dict[str, Any]:
    row = current_row(kept, INCIDENTS)  # an earlier release may have kept it
    missing = [name for name in _KEPT if name not in row]
    if missing:
        raise KeyError(missing[0])
    return {**row, **{name: datetime.fromisoformat(row[name]) for name in _TIMES}}


def default_file(lake: str, url: str, shape: str) -> Path:
    """Where it is kept by default: in the user's state folder (XDG), for each lake and receiver a file."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state"
    place = lake if "://" in lake else str(Path(lake).resolve())
    name = sha256("\0".join((place, url, shape)).encode()).hexdigest()[:16]
    return folder / "wirelake" / f"notify-{name}.json"
