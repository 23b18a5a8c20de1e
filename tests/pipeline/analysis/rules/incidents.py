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
from tests.captures.rhythms import HERE as RHYTHMS_DIR
from tests.captures.rhythms import SCENARIOS as RHYTHMS
from tests.captures.rhythms import story_of

RECORDINGS = (*SCENARIOS, *INCIDENTS, TROUBLED, STREAMS)
"""Of half a minute each."""
ALL = (*RECORDINGS, *RHYTHMS)
"""With those of ten minutes at real rhythms."""
_FOLDERS = {
    **dict.fromkeys(INCIDENTS, INCIDENTS_DIR),
    **dict.fromkeys((TROUBLED, STREAMS), MONGODB_DIR),
    **dict.fromkeys(RHYTHMS, RHYTHMS_DIR),
}


@dataclass(frozen=True)
class Recording:
    """A capture with its time, what its clients logged, and the (rule, subject) pairs that must be found in it.

    A scenario writes `{0}` in a subject for the address of its first broker.
    """

    name: str
    pcap: Path
    log: dict[str, Any]
    expected: frozenset[tuple[str, str]]

    @property
    def span_us(self) -> tuple[int, int]:
        """From the start of the capture to its end, µs since the epoch."""
        return self.log["capture_start_ms"] * 1000, self.log["capture_end_ms"] * 1000

    @property
    def seconds(self) -> float:
        """How long it is."""
        begin, end = self.span_us
        return (end - begin) / 1e6

    @property
    def is_healthy(self) -> bool:
        """Nothing above info may be found."""
        return self.name.startswith("healthy")

    @property
    def period_s(self) -> float | None:
        """Between commits of the groups that are ill, if it is known: told by the name."""
        told = self.name.rpartition("_")[2]
        return float(told[:-1]) if told[:-1].isdigit() and told.endswith("s") else None

    @property
    def story(self) -> str:
        """What it is, in a sentence."""
        told = story_of(self.name) if self.name in RHYTHMS else self.log.get("story", self.log["scenario"])
        return str(told).removeprefix("Healthy: ")


def recordings(names: Iterable[str] = RECORDINGS) -> list[Recording]:
    """The recordings by name."""
    found = []
    for name in names:
        folder = _FOLDERS.get(name, HERE)
        log = json.loads((folder / f"{name}.truth.json").read_text())
        module = RHYTHMS[name].partition(".")[0] if name in RHYTHMS else name
        expected = importlib.import_module(f"tests.scenarios.{module}").FINDINGS
        if isinstance(expected, dict):
            expected = expected[name]
        suffix = ".pcap.zst" if name in RHYTHMS else ".pcap"
        hosts = [broker["host"] for broker in log.get("brokers", ())]
        subjects = frozenset(
            (rule, subject.format(*hosts) if "{" in subject else subject) for rule, subject in expected
        )
        found.append(Recording(name, folder / f"{name}{suffix}", log, subjects))
    return found
