"""How do the DAGs run Wirelake's job? By spark-submit, as users do. The environment of Airflow's workers names where.

- ``WIRELAKE_HOME``: the checkout, with its ``.venv``
- ``WIRELAKE_LAKE``: the lake's folder or URL
- ``WIRELAKE_CONF``: the job's settings, such as what maintenance keeps for how long (as ``--conf``); optional
- connection ``spark_local``: the Spark master, e.g. ``{"conn_type": "spark", "host": "local[2]"}``
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator


def _place(name: str, default: str) -> str:
    """A folder from the environment, absolute, as tasks run in folders of their own; or a URL as it is."""
    text = os.environ.get(name, default)
    return text if "://" in text else str(Path(text).absolute())


HOME = _place("WIRELAKE_HOME", ".")
LAKE = _place("WIRELAKE_LAKE", "lake")
CONF = _place("WIRELAKE_CONF", "") if os.environ.get("WIRELAKE_CONF") else None


def submit(task_id: str, *arguments: str) -> SparkSubmitOperator:
    """A task that runs the job on the lake with these ``arguments`` (see ``pipeline/streaming/job.py --help``)."""
    return SparkSubmitOperator(
        task_id=task_id,
        conn_id="spark_local",
        application=f"{HOME}/pipeline/streaming/job.py",
        properties_file=f"{HOME}/conf/spark-defaults.conf",
        # The operator takes spark-submit by name only: the project's comes first on the path.
        env_vars={
            "PATH": f"{HOME}/.venv/bin{os.pathsep}{os.environ.get('PATH', '')}",
            "PYSPARK_PYTHON": f"{HOME}/.venv/bin/python",
        },
        application_args=["--lake", LAKE, *(["--conf", CONF] if CONF else []), *arguments],
        name=f"wirelake {task_id}",
        verbose=False,
    )
