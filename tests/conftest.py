"""What all tests share: one Spark session a worker, as each start costs ten seconds; how they run side by side."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.setup.java import SHORT_LIVED_JVM
from tests.paths import ROOT
from tests.requirements import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if not hasattr(sys.modules["__main__"], "__file__"):
    # pyspark takes the main module of pytest-xdist's workers, which has no file, for a doctest, and ends the process.
    sys.modules["__main__"].__file__ = __file__

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it: what a command prints into a pipe has no width


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The session of all tests that a worker runs."""
    require_java()
    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415 - loads Spark

    return build_session(
        "wirelake-tests",
        extra_conf={
            "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )


@pytest.fixture(scope="session")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A landing zone of three captures."""
    from pipeline.capture.runs.reading import read_capture  # noqa: PLC0415 - compiles

    folder = tmp_path_factory.mktemp("landing")
    for sample in ("healthy", "stuck_commit", "stalled_lso"):
        read_capture([ROOT / "tests" / "captures" / f"{sample}.pcap"], folder)
    return folder


@pytest.fixture(scope="session")
def whole(spark: SparkSession, landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its lake after one undisturbed run; tests copy it before they change it."""
    from pipeline.streaming.job import run_stream  # noqa: PLC0415 - loads Spark

    lake = tmp_path_factory.mktemp("whole") / "lake"
    run_stream(landing, lake, once=True, spark=spark)
    return lake


@pytest.fixture
def lake(whole: Path, tmp_path: Path) -> Path:
    """A copy of that lake, to change."""
    return Path(shutil.copytree(whole, tmp_path / "lake"))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what shares a session of Spark, a browser or a lake, and each other module; longest first."""
    groups = {item.nodeid: _group(item) for item in items}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item.nodeid]))
        if "spark" in _fixtures(item) or {"demo", "demo_lake"} & set(_fixtures(item)):
            item.add_marker(pytest.mark.spark)
        if _module(item) in _SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: _LONGEST.get(groups[item.nodeid], len(_LONGEST)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where the time went: seconds of each folder's tests, whatever worker ran them."""
    seconds, tests = Counter[str](), Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "when"):
                folder = "/".join(report.nodeid.split("::")[0].split("/")[1:3])
                seconds[folder] += report.duration
                tests[folder] += report.when == "call"
    terminalreporter.section("seconds by folder")
    for folder, spent in seconds.most_common():
        terminalreporter.write_line(f"{spent:8.1f} s {tests[folder]:6d} tests  {folder}")


_SLOW = frozenset((ROOT / "tests" / "slow_modules.txt").read_text(encoding="utf-8").split())
"""Modules that took five seconds or more among all tests on two cores (2026-11-30): `make check` leaves them out."""
_LONGEST = {
    name: place
    for place, name in enumerate((
        "lake", "commands", "browser", "tests/pipeline/embedded/test_streaming_diagnoser.py",
        "tests/pipeline/embedded/test_diagnose.py", "tests/protocols/test_resp_installed.py",
        "tests/pipeline/dashboard/web/test_damaged_lakes.py", "tests/pipeline/dashboard/web/test_pages.py",
        "tests/pipeline/commands/test_diagnose_follow.py", "tests/test_benchmarks.py",
        "tests/pipeline/embedded/test_no_room.py", "tests/pipeline/streaming/gold/test_realtime_findings.py",
        "tests/pipeline/commands/top/test_top.py", "tests/hostile/test_page_browser.py",
        "tests/pipeline/capture/runs/test_live.py", "tests/pipeline/analysis/incidents/test_golden.py",
    ))
}  # fmt: skip
"""Groups to begin with, so that no worker is left alone with one: tests of the session above, whose JVM is warm; of
commands that start Spark on their own; then modules that take longest."""


def _group(item: pytest.Item) -> str:
    if "spark" in _fixtures(item):
        return "lake"
    if "started" in _fixtures(item):
        return "browser"
    uses_demo = not {"demo", "demo_lake"}.isdisjoint(_fixtures(item))
    return "commands" if uses_demo or item.get_closest_marker("spark") is not None else _module(item)


def _module(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _fixtures(item: pytest.Item) -> list[str]:
    names: list[str] = getattr(item, "fixturenames", [])
    return names
