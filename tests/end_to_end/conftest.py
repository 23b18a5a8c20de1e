"""The demo, run once as a user runs it; the tests of this folder look at what it printed and built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.dashboard.sql import query
from pipeline.setup.java import SHORT_LIVED_JVM
from tests.paths import CAPTURES
from tests.requirements import require_java

SAMPLES = ("healthy", "stuck_commit", "stalled_lso", "old_format", "version_negotiation")


@dataclass(frozen=True)
class Demo:
    """Outcome of ``wirelake demo``."""

    lake: Path
    landing: Path
    exit_code: int
    output: str


def wirelake(
    *arguments: str | Path, cwd: Path | None = None, stdin: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program as a user would, from another folder than the checkout's."""
    program = Path(sys.executable).with_name("wirelake")
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=cwd,
        input=stdin,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="session", autouse=True)
def short_lived_jvms() -> Iterator[None]:
    """Commands that start Spark do so as the tests' own session does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRELAKE_SPARK", json.dumps({"spark.driver.extraJavaOptions": SHORT_LIVED_JVM}))
        yield


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo's lake."""
    require_java()
    folder = tmp_path_factory.mktemp("demo")
    done = wirelake("demo", "--lake", folder / "lake", "--landing", folder / "landing", cwd=folder)
    return Demo(folder / "lake", folder / "landing", done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="session")
def demo_lake(demo: Demo) -> Path:
    """The demo's lake, to read from only."""
    assert demo.exit_code == 0, demo.output
    return demo.lake


def rows(lake: Path, sql: str) -> list[dict[str, Any]]:
    """Ask a lake without a JVM."""
    found: list[dict[str, Any]] = query(lake, sql).to_pylist()
    return found


def truth(sample: str) -> dict[str, Any]:
    """The clients' own log of a recorded sample."""
    content: dict[str, Any] = json.loads((CAPTURES / f"{sample}.truth.json").read_text())
    return content


def timeline_of(lake: Path, log: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The rows of ``gold.offset_timeline`` from the time of a recording."""
    start, end = log["capture_start_ms"], log["capture_end_ms"]
    return rows(
        lake,
        f"SELECT * FROM gold.offset_timeline WHERE epoch_ms(ts) BETWEEN {start} AND {end} ORDER BY ts, exchange_id",
    )
