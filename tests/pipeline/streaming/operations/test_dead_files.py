"""May a table hold files that no version of it needs? Looked at beside others that write and remove."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.streaming.operations.maintenance import _may_hold_dead
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import FINDINGS
from tests.pipeline.rows import add, row


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table with one file."""
    add(tmp_path / FINDINGS.path, FINDINGS, [row(FINDINGS)])
    return tmp_path / FINDINGS.path


def test_a_file_that_goes_while_it_is_looked_at_is_gone(place: Path, tmp_path: Path) -> None:
    (place / "a.parquet").symlink_to(place / "removed meanwhile")
    assert not _may_hold_dead(Lake.at(tmp_path), FINDINGS, 1)
    dead = place / "b.parquet"
    dead.write_bytes(b"PAR1")
    assert not _may_hold_dead(Lake.at(tmp_path), FINDINGS, 1)
    os.utime(dead, (time.time() - 7200,) * 2)
    assert _may_hold_dead(Lake.at(tmp_path), FINDINGS, 1)


def test_a_folder_that_goes_while_it_is_looked_at_is_gone(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "date=2026-01-01").mkdir()
    scan = os.scandir

    def scan_late(path: Any = ".") -> Any:
        if str(path).endswith("date=2026-01-01"):
            raise FileNotFoundError(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_late)
    assert not _may_hold_dead(Lake.at(tmp_path), FINDINGS, 1)
