"""What a landing file must hold: its manifest states it, which the agent wrote before the file.

A manifest is as much from outside as the file itself: nothing in it is taken for what it should be. It shows damage,
cut off files and what others put there; not a change by somebody who may write to the landing zone and writes a fitting
manifest as well: against that are the permissions of the folder.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Literal

from decoder.model import MAX_TS_US, clamped_time

Kind = Literal["frames", "gaps"]
"""Name of the query that reads the files."""

_FOLDER: dict[Kind, str] = {"frames": "", "gaps": "gaps/"}
_NAME = re.compile(r"(?P<agent>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})-(?P<start>\d{1,18})-\d{4,9}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST = 2**40
"""Of rows and bytes: more than any file has, and so few that sums over all files fit a bigint."""
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MOST_BYTES = 1 << 30
"""The largest landing file that is read: a task holds it in memory. No agent writes a tenth of it."""

MOST_MANIFEST_BYTES = 64 * 1024
"""The largest manifest that is read; that of an agent has some 300 bytes."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a landing file holds.

    Attributes:
        rows: in the file.
        size: of the file, bytes.
        sha256: of its content.
        first_us: capture time of the earliest row, µs since the epoch; clamped as those of frames are.
        frame_bytes: of its frames on the wire; of releases that did not note it those of the file.
    """

    rows: int
    size: int
    sha256: str
    first_us: int
    frame_bytes: int


def place_of(kind: Kind, name: str) -> str | None:
    """Where the agent puts a file of this name (without ending), in the landing zone; None: no agent names one so."""
    found = _NAME.fullmatch(name)
    if found is None or int(found["start"]) > MAX_TS_US:
        return None
    return f"{_FOLDER[kind]}date={_day_of(int(found['start']))}/{name}.parquet"


def start_of(name: str) -> int:
    """The capture time of the first row of a file of this name, µs since the epoch; 0: no agent names one so."""
    found = _NAME.fullmatch(name)
    return int(found["start"]) if found else 0


def agent_of(name: str) -> str:
    """The agent that wrote a file of this name."""
    found = _NAME.fullmatch(name)
    return found["agent"] if found else "unknown"


def manifest_place(kind: Kind, name: str) -> str:
    """Where the manifest of a file is, in the landing zone."""
    return f"_manifest/{_FOLDER[kind]}{name}.json"


def parsed(content: bytes, place: str) -> Manifest | None:
    """What a manifest states of the file at ``place``; None: it is not the manifest of this file."""
    try:
        stated = json.loads(content)
        if stated["path"] != place or not _SHA256.fullmatch(stated["sha256"]):
            return None
        first = datetime.fromisoformat(str(stated["min_ts"]).replace("Z", "+00:00"))
        first_us = clamped_time((first - _EPOCH) // _MICROSECOND)
        rows, size, frames = stated["rows"], stated["bytes"], stated.get("frame_bytes", stated["bytes"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    counts = rows, size, frames
    if not all(type(count) is int and 0 <= count < _MOST for count in counts):
        return None
    return Manifest(rows, size, stated["sha256"], first_us, frames)


def size_fault(size: int) -> str | None:
    """What is wrong with a file of this many bytes, whether it has a manifest or not; as of :func:`fault_of`."""
    if size > MOST_BYTES:
        return f"has {size} bytes; files of more than {MOST_BYTES} are not read, no agent writes them"
    return None


def fault_of(size: int, digest: str, manifest: Manifest | None) -> str | None:
    """What is wrong with a file that has a manifest: a sentence without a subject; None: nothing.

    Args:
        size: of the file, bytes.
        digest: SHA-256 of its content, in hexadecimal; of a file that is too large it is not looked at.
        manifest: its own; None: it is not the manifest of this file, or cannot be read.
    """
    if (too_large := size_fault(size)) is not None:
        return too_large
    if manifest is None:
        return "has a manifest that is not its own, or cannot be read"
    if size != manifest.size:
        return f"has {size} bytes instead of the {manifest.size} of its manifest: it was cut off or overwritten"
    return None if digest == manifest.sha256 else "has another content than its manifest says (SHA-256)"


def _day_of(micros: int) -> date:
    return (_EPOCH + timedelta(microseconds=micros)).date()
