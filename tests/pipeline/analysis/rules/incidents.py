"""Recorded traffic as one lake, and what each recording is declared to show."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.captures.mongodb.record import HERE as MONGODB_DIR
from tests.captures.mongodb.record import STREAMS, TROUBLED
from tests.captures.record import HERE, INCIDENTS, INCIDENTS_DIR, SCENARIOS
from tests.captures.rhythms import HERE as RHYTHMS_DIR
from tests.captures.rhythms import SCENARIOS as RHYTHMS
from tests.captures.rhythms import module_of, story_of

RECORDINGS = (*SCENARIOS, *INCIDENTS, TROUBLED, STREAMS)
"""Of half a minute each."""
ALL = (*RECORDINGS, *RHYTHMS)
"""With those of ten minutes at real rhythms."""
Brokers = Sequence[Mapping[str, Any]]
"""As a recording's log names them, with `host` and `port`."""
_FOLDERS = {
    **dict.fromkeys(INCIDENTS, INCIDENTS_DIR),
    **dict.fromkeys((TROUBLED, STREAMS), MONGODB_DIR),
    **dict.fromkeys(RHYTHMS, RHYTHMS_DIR),
}


@dataclass(frozen=True)
class Recording:
    """A capture with its time, what its clients logged, and the (rule, subject) pairs that must be found in it.

    Attributes:
        possible: what may be found beside them where the beginning or some frames are missing.
        unknown: by variant, those of them that cannot be known there.
    """

    name: str
    pcap: Path
    log: dict[str, Any]
    expected: frozenset[tuple[str, str]]
    possible: frozenset[tuple[str, str]] = frozenset()
    unknown: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

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
        scenario = importlib.import_module(f"tests.scenarios.{module_of(name) if name in RHYTHMS else name}")
        brokers = log.get("brokers", ())
        expected, possible = (_declared(scenario, which, name, brokers) for which in ("FINDINGS", "POSSIBLE"))
        unknown = getattr(scenario, "UNKNOWN", {}).get(name, {})
        suffix = ".pcap.zst" if name in RHYTHMS else ".pcap"
        told = {variant: _pairs(some, brokers) for variant, some in unknown.items()}
        found.append(Recording(name, folder / f"{name}{suffix}", log, expected, possible, told))
    return found


def _declared(scenario: Any, which: str, name: str, brokers: Brokers) -> frozenset[tuple[str, str]]:
    declared = getattr(scenario, which, {})
    return _pairs(declared.get(name, ()) if isinstance(declared, dict) else declared, brokers)


def _pairs(some: Iterable[tuple[str, str]], brokers: Brokers) -> frozenset[tuple[str, str]]:
    """Rules and subjects; `{0}` in a subject stands for the address of the first broker, `{port}` for its port."""
    hosts, port = [each["host"] for each in brokers], next((each["port"] for each in brokers), 0)
    return frozenset((rule, subject.format(*hosts, port=port) if "{" in subject else subject) for rule, subject in some)
