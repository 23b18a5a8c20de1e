"""A real broker, real clients in two languages, tcpdump, and the job under spark-submit as the README shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.tables import TABLES
from tests.captures.record import record
from tests.end_to_end.conftest import rows, timeline_of, wirelake
from tests.end_to_end.truth import compare_commits, compare_produced
from tests.paths import ROOT
from tests.requirements import require_java, require_maven, require_tcpdump, require_tshark
from tests.scenarios import rejected_commit

pytestmark = [pytest.mark.spark, pytest.mark.broker]

SCENARIO = "rejected_commit"


@dataclass(frozen=True)
class Live:
    """What was recorded a moment ago, and the lake made of it."""

    lake: Path
    landing: Path
    truth: dict[str, Any]
    counts: dict[str, dict[str, int]]
    output: str


def spark_submit(landing: Path, lake: Path) -> str:
    """Run the job as the README shows, from another folder; return what it printed."""
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [
            str(submit), "--properties-file", str(ROOT / "conf" / "spark-defaults.conf"),
            "--driver-java-options", SHORT_LIVED_JVM,
            str(ROOT / "pipeline" / "streaming" / "job.py"),
            "--landing", str(landing), "--lake", str(lake), "--once",
        ],
        capture_output=True, text=True, check=False, cwd=landing.parent,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Live:
    """Record, read and stream."""
    for require in (require_java, require_maven, require_tcpdump, require_tshark):
        require()
    folder = tmp_path_factory.mktemp("live")
    record(SCENARIO, folder)
    read = wirelake("capture", "read", folder / f"{SCENARIO}.pcap", "--landing", folder / "landing")
    assert read.returncode == 0, read.stderr
    output = spark_submit(folder / "landing", folder / "lake")
    truth = json.loads((folder / f"{SCENARIO}.truth.json").read_text())
    counts = json.loads((folder / f"{SCENARIO}.counts.json").read_text())
    return Live(folder / "lake", folder / "landing", truth, counts, output)


def test_every_acknowledged_record_is_in_the_timeline(live: Live) -> None:
    comparison = compare_produced(live.truth, timeline_of(live.lake, live.truth))
    assert comparison.compared == 80
    assert (comparison.missing, comparison.surplus) == ([], [])


def test_every_accepted_commit_is_in_the_timeline(live: Live) -> None:
    comparison = compare_commits(live.truth, timeline_of(live.lake, live.truth), accepted=True)
    assert comparison.compared > 0
    assert (comparison.missing, comparison.surplus) == ([], [])


def test_every_refused_commit_is_in_the_timeline_with_its_error(live: Live) -> None:
    timeline = timeline_of(live.lake, live.truth)
    comparison = compare_commits(live.truth, timeline, accepted=False)
    assert comparison.compared == 3
    assert (comparison.missing, comparison.surplus) == ([], [])
    refused = {e["error"] for e in live.truth["events"] if e["kind"] == "commit_error"}
    seen = {r["error_name"] for r in timeline if r["kind"] == "commit_rejected"}
    assert seen == refused


def test_a_refused_commit_moves_nothing(live: Live) -> None:
    timeline = timeline_of(live.lake, live.truth)
    last = {r["partition"]: r["committed_offset"] for r in timeline if r["committed_offset"] is not None}
    assert last == {int(p): offset for p, offset in live.truth["outcome"]["committed"].items()}


def test_messages_equal_an_independent_count(live: Live) -> None:
    found = rows(
        live.lake,
        "SELECT direction, concat(api_key, ':', api_version) AS api, count(*) AS n FROM bronze.frames "
        "WHERE decode_status = 'ok' GROUP BY ALL",
    )
    for direction, expected in live.counts.items():
        assert {r["api"]: r["n"] for r in found if r["direction"] == direction} == expected


def test_the_refused_commits_are_found_and_nothing_else(live: Live) -> None:
    found = {(r["rule"], r["subject"]) for r in rows(live.lake, "SELECT rule, subject FROM gold.findings")}
    assert found == rejected_commit.FINDINGS


@pytest.mark.proof  # that the job does it is in tests/pipeline/streaming/test_job.py; here it is spark-submit's
def test_running_the_job_again_changes_nothing(live: Live) -> None:
    before = versions(live.lake)
    spark_submit(live.landing, live.lake)
    assert versions(live.lake) == before


def versions(lake: Path) -> dict[str, int]:
    """The Delta version of each table: a commit, even an empty one, makes a new one."""
    return {name: DeltaTable(str(lake / table.path)).version() for name, table in TABLES.items()}
