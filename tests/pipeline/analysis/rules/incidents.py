"""Recorded traffic as one lake, and what each recording is declared to show."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.captures.mongodb.record import HERE as MONGODB_DIR
from tests.captures.mongodb.record import STREAMS, TROUBLED
from tests.captures.record import HERE, INCIDENTS, INCIDENTS_DIR, SCENARIOS

RECORDINGS = (*SCENARIOS, *INCIDENTS, TROUBLED, STREAMS)
_FOLDERS = {**dict.fromkeys(INCIDENTS, INCIDENTS_DIR), **dict.fromkeys((TROUBLED, STREAMS), MONGODB_DIR)}


@dataclass(frozen=True)
class Recording:
    """A capture with its time, what its clients logged, and the (rule, subject) pairs that must be found in it."""

    name: str
    pcap: Path
    log: dict[str, Any]
    expected: frozenset[tuple[str, str]]

    @property
    def span_us(self) -> tuple[int, int]:
        """From the start of the capture to its end, µs since the epoch."""
        return self.log["capture_start_ms"] * 1000, self.log["capture_end_ms"] * 1000


def recordings(names: Iterable[str] = RECORDINGS) -> list[Recording]:
    """The recordings by name."""
    found = []
    for name in names:
        folder = _FOLDERS.get(name, HERE)
        log = json.loads((folder / f"{name}.truth.json").read_text())
        expected = importlib.import_module(f"tests.scenarios.{name}").FINDINGS
        found.append(Recording(name, folder / f"{name}.pcap", log, frozenset(expected)))
    return found
