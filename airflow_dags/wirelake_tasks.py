"""Builds the tasks of all Wirelake DAGs: the Spark job by spark-submit, other commands by the program itself.

The environment of Airflow's workers names where things are:

- ``WIRELAKE_BIN``: the bin folder of the environment in which Wirelake is installed. Not set: ``.venv/bin`` of
  ``WIRELAKE_HOME``, a checkout
- ``WIRELAKE_LAKE``: the lake's folder or URL
- ``WIRELAKE_LANDING``: the landing zone's folder or URL; only ``wirelake_ingest`` reads it
- ``WIRELAKE_CONF``: the job's settings, such as how long maintenance keeps what (as ``--conf``); optional
- connection ``spark_local``: the Spark master, e.g. ``{"conn_type": "spark", "host": "local[2]"}``

All tasks run in the pool ``WIRELAKE_POOL`` (default: ``default_pool``). A pool with one slot lets them run one by one.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from shlex import join
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException


def place(name: str, default: str) -> str:
    """A folder from the environment, absolute, as tasks run in folders of their own; a URL as it is."""
    text = os.environ.get(name, default)
    return text if "://" in text else str(Path(text).absolute())


HOME = place("WIRELAKE_HOME", ".")
BIN = place("WIRELAKE_BIN", f"{HOME}/.venv/bin")
LAKE = place("WIRELAKE_LAKE", "lake")
LANDING = place("WIRELAKE_LANDING", "landing")
CONF = ["--conf", place("WIRELAKE_CONF", "")] if os.environ.get("WIRELAKE_CONF") else []
TABLES = Asset("wirelake_lake")
"""What each task that writes the lake updates: a DAG of your own with ``schedule=[TABLES]`` runs after it."""
_JOB = Path(__file__).with_name("wirelake_submitted.py")
_SHARED = Path(BIN).parent / "share" / "wirelake" / "conf" / "spark-defaults.conf"
_SPARK = _SHARED if _SHARED.is_file() else Path(HOME) / "conf" / "spark-defaults.conf"
_EXIT_CODE = re.compile(r"(?:exit code|Error code is:) (\d+)")
_MEANINGS = {
    1: "a critical check failed",
    2: "settings, lake or machine are not as the task needs them; the line above in the log says what to do",
    3: "the stream set landing files aside; ops.landing_files names them",
}
_FAILED = """
SELECT severity, table_name, name, column_name, message, rows_sql FROM ops.quality_results
WHERE NOT success AND run_id = (SELECT max(run_id) FROM ops.quality_results) ORDER BY severity, table_name, name
"""
DEFAULTS: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=30),
    "execution_timeout": timedelta(hours=6),
    "pool": os.environ.get("WIRELAKE_POOL", "default_pool"),
}
"""``default_args`` of all DAGs. What another run may cure (a killed JVM, a lost disk) is tried again."""


def _raise_final(error: AirflowException, final: frozenset[int]) -> None:
    """Raise AirflowFailException, so that Airflow does not retry, if the exit code is one of ``final``."""
    found = _EXIT_CODE.search(str(error))
    code = int(found[1]) if found else None
    if code in final:
        raise AirflowFailException(f"exit code {code}: {_MEANINGS[code]}. Not tried again.") from error


class WirelakeJob(SparkSubmitOperator):
    """The Spark job by spark-submit; exit codes 2 and 3 are final."""

    def execute(self, context: Any) -> None:
        """Run it.

        Raises:
            AirflowFailException: it failed in a way that another run does not cure.
            AirflowException: it failed otherwise.
        """
        try:
            super().execute(context)
        except AirflowException as error:
            _raise_final(error, frozenset({2, 3}))
            raise


class WirelakeCommand(BashOperator):
    """A command of the program; exit codes 1 and 2 are final."""

    def execute(self, context: Any) -> Any:
        """Run it; raises as :meth:`WirelakeJob.execute`."""
        try:
            return super().execute(context)
        except AirflowException as error:
            _raise_final(error, frozenset({1, 2}))
            raise


def submit(task_id: str, *arguments: str) -> WirelakeJob:
    """A task that runs the Spark job on the lake with these ``arguments`` (as of `wirelake_submitted.py --help`)."""
    return WirelakeJob(
        task_id=task_id,
        conn_id="spark_local",
        application=str(_JOB),
        properties_file=str(_SPARK),
        # The operator takes spark-submit by name only: Wirelake's comes first on the path.
        env_vars={"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", "PYSPARK_PYTHON": f"{BIN}/python"},
        application_args=["--lake", LAKE, *CONF, *arguments],
        name=f"wirelake {task_id}",
        verbose=False,
        outlets=[TABLES],
    )


def command(task_id: str, *arguments: str, **options: Any) -> WirelakeCommand:
    """A task that runs ``wirelake`` with these ``arguments``."""
    return WirelakeCommand(task_id=task_id, bash_command=join([f"{BIN}/wirelake", *arguments]), **options)


def log_failed_checks(context: Any) -> None:
    """Log which checks failed, each with the query that lists its rows; for ``on_failure_callback``."""
    shown = subprocess.run(
        [f"{BIN}/wirelake", "sql", _FAILED, "--lake", LAKE, "--json"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    logging.getLogger("airflow.task").error("Checks that failed:\n%s", shown.stdout or shown.stderr)
