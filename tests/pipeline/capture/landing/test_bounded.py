"""Where files are taken away more slowly than they come, whoever writes waits, and says so once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.capture.landing.bounded import BoundedStore
from pipeline.capture.landing.stores import LandingError, LocalStore

MOST = 1000
FRAMES = "date=2026-03-01/agent-1-{:04d}.parquet"


class Zone:
    """A landing zone and what was done there; time passes only where a write waits."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.waits, self.sleeps = root, 0, 0
        self.while_waiting: Callable[[], object] = lambda: None
        self.store = BoundedStore(LocalStore(root), MOST, self._note)
        # Of that module alone: other threads of this process sleep, too.
        monkeypatch.setattr("pipeline.capture.landing.bounded.time", SimpleNamespace(sleep=self._sleep))

    def _note(self) -> None:
        self.waits += 1

    def _sleep(self, _: float) -> None:
        self.sleeps += 1
        assert self.sleeps < 100, "it would wait for ever"
        self.while_waiting()

    def write(self, number: int, size: int) -> None:
        self.store.write([(f"_manifest/agent-1-{number:04d}.json", b"{}"), (FRAMES.format(number), bytes(size))])

    def take(self, number: int) -> None:
        (self.root / FRAMES.format(number)).unlink()

    @property
    def held(self) -> int:
        return sum(file.stat().st_size for file in self.root.rglob("*.parquet"))


@pytest.fixture
def zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Zone:
    return Zone(tmp_path / "zone", monkeypatch)


def test_what_is_taken_in_time_never_waits(zone: Zone) -> None:
    for number in range(50):
        zone.write(number, 400)
        if number:
            zone.take(number - 1)
    assert (zone.waits, zone.sleeps) == (0, 0)


def test_a_write_waits_until_enough_was_taken(zone: Zone) -> None:
    for number in range(3):
        zone.write(number, 400)
    assert (zone.held, zone.waits) == (1200, 0), "one file more than there is room for"
    zone.while_waiting = lambda: zone.take(zone.sleeps - 3) if zone.sleeps >= 3 else None
    zone.write(3, 400)
    assert zone.sleeps == 3
    assert zone.held == 1200
    zone.sleeps = 0
    zone.while_waiting = lambda: zone.take(1)
    zone.write(4, 400)
    assert zone.waits == 1, "it is said once"


def test_never_more_lies_there_than_the_limit_and_a_file(zone: Zone) -> None:
    waiting = list(range(40))
    zone.while_waiting = lambda: zone.take(waiting.pop(0))
    for number in range(40):
        zone.write(number, 300)
        assert zone.held < MOST + 300


def test_what_nobody_takes_does_not_count(zone: Zone) -> None:
    for _ in range(5):
        zone.store.write([("_agents/agent/progress.json", bytes(5 * MOST))])
    zone.write(0, 10)
    assert zone.waits == 0
    assert zone.store.size("_agents/agent/progress.json") == 5 * MOST
    assert zone.store.read(FRAMES.format(0)) == bytes(10)


def test_progress_is_kept_while_files_wait(zone: Zone) -> None:
    zone.write(0, MOST)
    zone.store.write([("_agents/agent/progress.json", b"{}")])
    assert zone.waits == 0


def test_nobody_waits_for_a_reader_that_has_ended(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    zone.write(0, MOST)
    zone.while_waiting = lambda: monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(LandingError, match="has ended"):
        zone.write(1, 1)
    assert not (zone.root / FRAMES.format(1)).exists()


def test_it_goes_on_by_itself(tmp_path: Path) -> None:
    """With the real clock, and somebody else who takes."""
    has_waited = threading.Event()
    store = BoundedStore(LocalStore(tmp_path), MOST, has_waited.set)
    store.write([(FRAMES.format(0), bytes(MOST))])
    taken = threading.Timer(0.3, (tmp_path / FRAMES.format(0)).unlink)
    taken.start()
    store.write([(FRAMES.format(1), bytes(MOST))])
    taken.join()
    assert has_waited.is_set()
    assert [file.name for file in tmp_path.rglob("*.parquet")] == [Path(FRAMES.format(1)).name]
