"""The DAGs run the job on the lake with a real Airflow and a real spark-submit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
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
from tests.brokers.process import free_ports
from tests.end_to_end.conftest import rows
from tests.paths import ROOT
from tests.requirements import AIRFLOW_BIN, require_airflow, require_java

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.proof]

DERIVED = (FRAMES, EXCHANGES, OFFSET_EVENTS, RECORD_BATCHES, OFFSET_TIMELINE, FINDINGS)


def surroundings(home: Path, lake: Path, **more: str) -> dict[str, str]:
    """The environment of Airflow's programs, with a home of their own."""
    return {
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
        **more,
    }


def run(*arguments: str, environment: dict[str, str]) -> str:
    """What an Airflow command prints, which must succeed."""
    done = subprocess.run(
        [str(AIRFLOW_BIN / "airflow"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=environment["AIRFLOW_HOME"],
        env=environment,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-8000:]
    return output


def airflow(*arguments: str, home: Path, lake: Path) -> None:
    """Run Airflow in its own environment with a home of its own."""
    run(*arguments, environment=surroundings(home, lake))


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


_TWO_TASKS = """
from datetime import datetime, timedelta

from airflow.sdk import DAG
from wirelake_tasks import DEFAULTS, command

with DAG(
    dag_id="two_tasks",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    default_args={**DEFAULTS, "retry_delay": timedelta(seconds=1), "retry_exponential_backoff": False},
) as dag:
    command("killed_once", "killed-once")
    command("final", "check", "--lake", "/nowhere/lake")
"""
_KILLED_ONCE = """#!/bin/sh
# Notes each command; killed the first time that it is asked for one of them; the program itself otherwise.
echo "$1" >> "{folder}/commands"
if [ "$1" = killed-once ]; then
    [ -e "{folder}/killed" ] && exit 0
    touch "{folder}/killed"
    exit 137
fi
exec "{program}" "$@"
"""
_ITSELF = """#!/bin/sh
exec "{program}" "$@"
"""
_LONGEST_S = 900


class Scheduled:
    """A running Airflow: server, scheduler and what reads the DAGs, each a process of its own."""

    PROGRAMS = ("api-server", "scheduler", "dag-processor")

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.home = Path(environment["AIRFLOW_HOME"])
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Scheduled:
        for name in self.PROGRAMS:
            with (self.home / f"{name}.log").open("wb") as log:
                self._processes.append(
                    subprocess.Popen(
                        [str(AIRFLOW_BIN / "airflow"), name],
                        stdout=log, stderr=log, env=self.environment, cwd=self.home, start_new_session=True,
                    )
                )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Rows of Airflow's own database."""
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=60)) as database:
            return database.execute(sql, values).fetchall()

    def wait(self, dag: str, tasks: int) -> dict[str, str]:
        """The state of each task of a DAG, by run and task, when ``tasks`` of them have ended."""
        until = time.monotonic() + _LONGEST_S
        ended: dict[str, str] = {}
        while time.monotonic() < until:
            rows_now = self.ask("SELECT run_id, task_id, state FROM task_instance WHERE dag_id = ?", dag)
            ended = {f"{at}/{task}": state for at, task, state in rows_now if state in _ENDED}
            if len(ended) == tasks:
                return ended
            time.sleep(2)
        logs = "\n".join((self.home / f"{name}.log").read_text(errors="replace")[-2000:] for name in self.PROGRAMS)
        raise AssertionError(f"{dag}: only {ended} ended\n{logs}")


_ENDED = ("success", "failed", "skipped", "upstream_failed")


@pytest.fixture
def scheduled(lake: Path, home: Path, tmp_path: Path) -> Iterator[Scheduled]:
    """Airflow at work on a lake, with a DAG of ours beside the three."""
    dags, programs = tmp_path / "dags", tmp_path / "bin"
    shutil.copytree(ROOT / "airflow_dags", dags)
    (dags / "two_tasks.py").write_text(_TWO_TASKS)
    programs.mkdir()
    for name, text in (("wirelake", _KILLED_ONCE), ("python", _ITSELF), ("spark-submit", _ITSELF)):
        script = programs / name
        script.write_text(text.format(folder=tmp_path, program=Path(sys.executable).with_name(name)))
        script.chmod(0o755)
    port, log_port = free_ports(2)
    environment = surroundings(
        home,
        lake,
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
        AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION="true",
        AIRFLOW__API__PORT=str(port),
        AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"http://127.0.0.1:{port}/execution/",
        AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT=str(log_port),
        AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK="false",
        WIRELAKE_BIN=str(programs),
        WIRELAKE_LANDING=str(tmp_path / "landing"),
    )
    run("dags", "reserialize", environment=environment)
    with Scheduled(environment) as airflow_at_work:
        yield airflow_at_work


def test_the_scheduler_retries_what_was_killed_and_not_what_is_final(scheduled: Scheduled, tmp_path: Path) -> None:
    """Told by what ran: on a busy machine Airflow itself may lose a task before it begins, and try that again."""
    run("dags", "unpause", "--yes", "two_tasks", environment=scheduled.environment)
    run("dags", "trigger", "two_tasks", environment=scheduled.environment)
    ended = {key.rpartition("/")[2]: value for key, value in scheduled.wait("two_tasks", 2).items()}
    assert ended == {"killed_once": "success", "final": "failed"}
    assert sorted((tmp_path / "commands").read_text().split()) == ["check", "killed-once", "killed-once"]


def test_airflows_own_backfill_rebuilds_a_day_and_skips_the_schedule(scheduled: Scheduled, lake: Path) -> None:
    day = rows(lake, "SELECT max(date) AS day FROM bronze.frames")[0]["day"]
    before = DeltaTable(str(lake / EXCHANGES.path)).version()
    was = content(lake, EXCHANGES)
    run("dags", "unpause", "--yes", "wirelake_backfill", environment=scheduled.environment)
    run(
        "backfill", "create", "--dag-id", "wirelake_backfill", "--from-date", str(day), "--to-date", str(day),
        environment=scheduled.environment,
    )  # fmt: skip
    ended = scheduled.wait("wirelake_backfill", 4)
    of_backfill = {key: value for key, value in ended.items() if key.startswith("backfill")}
    assert {key.rpartition("/")[2]: state for key, state in of_backfill.items()} == dict.fromkeys(
        ("days", "backfill"), "success"
    )
    assert {state for key, state in ended.items() if key not in of_backfill} == {"skipped"}
    assert DeltaTable(str(lake / EXCHANGES.path)).version() > before
    assert content(lake, EXCHANGES) == was
