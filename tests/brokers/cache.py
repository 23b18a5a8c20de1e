"""Keeps what tests fetch and build; of several test processes that need it at once, one makes it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.paths import ROOT

CACHE = ROOT / ".cache"


@contextmanager
def only_one_makes(target: Path) -> Iterator[None]:
    """Hold `target` alone, made or not: one process makes it, the others wait and then find it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
