"""Derives a range of days of the lake anew, by spark-submit of Wirelake's job.

Trigger it with a range, e.g. after a codec upgrade (``recode`` decodes the raw frames anew first)::

    airflow dags trigger wirelake_backfill --conf '{"date_from": "2026-11-01", "date_to": "2026-11-03", "recode": true}'

Where things are comes from the environment of Airflow's workers:

- ``WIRELAKE_HOME``: the checkout, with its ``.venv``
- ``WIRELAKE_LAKE``: the lake's folder or URL
- connection ``spark_local``: the Spark master, e.g. ``{"conn_type": "spark", "host": "local[2]"}``
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Param

HOME = os.environ.get("WIRELAKE_HOME", ".")
LAKE = os.environ.get("WIRELAKE_LAKE", "lake")

with DAG(
    dag_id="wirelake_backfill",
    description="Derive a range of days of the lake anew",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's lock on the lake
    doc_md=__doc__,
    tags=["wirelake"],
    params={
        "date_from": Param(type="string", format="date", description="First day, UTC"),
        "date_to": Param(type="string", format="date", description="Last day, inclusive"),
        "recode": Param(False, type="boolean", description="Decode the raw frames anew first"),
    },
) as dag:
    SparkSubmitOperator(
        task_id="backfill",
        conn_id="spark_local",
        application=f"{HOME}/pipeline/streaming/job.py",
        properties_file=f"{HOME}/conf/spark-defaults.conf",
        # The operator takes spark-submit by name only: the project's comes first on the path.
        env_vars={
            "PATH": f"{HOME}/.venv/bin{os.pathsep}{os.environ.get('PATH', '')}",
            "PYSPARK_PYTHON": f"{HOME}/.venv/bin/python",
        },
        application_args=[
            "--lake",
            LAKE,
            "--backfill-from",
            "{{ params.date_from }}",
            "--backfill-to",
            "{{ params.date_to }}",
            "{{ '--recode' if params.recode else '--no-recode' }}",
        ],
        name="wirelake backfill",
        verbose=False,
    )
