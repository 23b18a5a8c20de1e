"""The DAGs run the job on the lake with a real Airflow and a real spark-submit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.tables import (
    EXCHANGES,
    FINDINGS,
    FRAMES,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    QUALITY_RESULTS,
    RECORD_BATCHES,
    Table,
)
from tests.end_to_end.conftest import rows
from tests.paths import ROOT
from tests.requirements import AIRFLOW_BIN, require_airflow, require_java

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.proof]

DERIVED = (FRAMES, EXCHANGES, OFFSET_EVENTS, RECORD_BATCHES, OFFSET_TIMELINE, FINDINGS)


def airflow(*arguments: str, home: Path, lake: Path) -> None:
    """Run Airflow in its own environment with a home of its own."""
    done = subprocess.run(
        [str(AIRFLOW_BIN / "airflow"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={
            **os.environ,
            "PATH": os.pathsep.join((str(AIRFLOW_BIN), os.environ["PATH"])),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "airflow_dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW_CONN_SPARK_LOCAL": '{"conn_type": "spark", "host": "local[2]"}',
            "WIRELAKE_HOME": str(ROOT),
            "WIRELAKE_LAKE": str(lake),
            "WIRELAKE_CONF": str(ROOT / "conf" / "local.yaml"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM,
        },
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-8000:]


def content(lake: Path, table: Table) -> list[str]:
    """All rows of a table, in an order of their own."""
    found: list[dict[str, Any]] = DeltaTable(str(lake / table.path)).to_pyarrow_table().to_pylist()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in found)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Airflow's home, with its database."""
    require_java()
    require_airflow()
    folder = tmp_path_factory.mktemp("airflow")
    airflow("db", "migrate", home=folder, lake=folder / "none")
    return folder


@pytest.fixture
def lake(demo_lake: Path, tmp_path: Path) -> Path:
    """A copy of the demo's lake, to change."""
    return Path(shutil.copytree(demo_lake, tmp_path / "lake"))


def test_the_backfill_dag_leaves_the_lake_identical(lake: Path, home: Path) -> None:
    before = {table.full_name: content(lake, table) for table in DERIVED}
    versions = {table.full_name: DeltaTable(str(lake / table.path)).version() for table in DERIVED}
    days = rows(lake, "SELECT min(date) AS first, max(date) AS last FROM bronze.frames")[0]
    conf = {"date_from": str(days["first"]), "date_to": str(days["last"]), "recode": True}
    airflow("dags", "test", "wirelake_backfill", "--conf", json.dumps(conf), home=home, lake=lake)
    for table in DERIVED:
        assert before[table.full_name], table.full_name
        assert content(lake, table) == before[table.full_name], table.full_name
    after = {table.full_name: DeltaTable(str(lake / table.path)).version() for table in DERIVED}
    assert after["bronze.frames"] > versions["bronze.frames"], "nothing was re-processed"


def test_the_daily_dag_maintains_the_lake_and_checks_it(lake: Path, home: Path) -> None:
    before = {table.full_name: content(lake, table) for table in DERIVED}
    checked = len(content(lake, QUALITY_RESULTS))
    airflow("dags", "test", "wirelake_daily", home=home, lake=lake)
    done = [commit["operation"] for commit in DeltaTable(str(lake / FRAMES.path)).history()]
    assert "OPTIMIZE" in done, "small files did not come together"
    for table in DERIVED:
        assert content(lake, table) == before[table.full_name], table.full_name
    assert len(content(lake, QUALITY_RESULTS)) > checked
