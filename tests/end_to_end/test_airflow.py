"""Does the DAG re-process the lake with a real Airflow and a real spark-submit, and leave it as it was?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.tables import EXCHANGES, FINDINGS, FRAMES, OFFSET_EVENTS, OFFSET_TIMELINE, RECORD_BATCHES, Table
from tests.end_to_end.conftest import rows
from tests.requirements import AIRFLOW_BIN, ROOT, require_airflow, require_java

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

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
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-8000:]


def content(lake: Path, table: Table) -> list[str]:
    """All rows of a table, in an order of their own."""
    found: list[dict[str, Any]] = DeltaTable(str(lake / table.path)).to_pyarrow_table().to_pylist()
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in found)


def test_the_backfill_dag_leaves_the_lake_identical(demo_lake: Path, tmp_path: Path) -> None:
    require_java()
    require_airflow()
    lake, home = tmp_path / "lake", tmp_path / "airflow"
    shutil.copytree(demo_lake, lake)
    home.mkdir()
    before = {table.full_name: content(lake, table) for table in DERIVED}
    versions = {table.full_name: DeltaTable(str(lake / table.path)).version() for table in DERIVED}
    days = rows(lake, "SELECT min(date) AS first, max(date) AS last FROM bronze.frames")[0]
    conf = {"date_from": str(days["first"]), "date_to": str(days["last"]), "recode": True}
    airflow("db", "migrate", home=home, lake=lake)
    airflow("dags", "test", "wirelake_backfill", "--conf", json.dumps(conf), home=home, lake=lake)
    for table in DERIVED:
        assert before[table.full_name], table.full_name
        assert content(lake, table) == before[table.full_name], table.full_name
    after = {table.full_name: DeltaTable(str(lake / table.path)).version() for table in DERIVED}
    assert after["bronze.frames"] > versions["bronze.frames"], "nothing was re-processed"
