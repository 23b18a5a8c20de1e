"""Once a day: maintenance of the lake, then its quality checks, whose critical failures fail the run.

``maintain`` brings small files together and drops what is older than its table keeps; a stream that runs on the lake
does it between two of its batches. ``check`` writes to ``ops.quality_results``.

The hour stands in ``WIRELAKE_DAILY`` as cron writes it (default: 3:00 UTC). Where things are: see ``wirelake_job.py``.
"""

from __future__ import annotations

import os
from datetime import datetime
from shlex import quote

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from wirelake_job import CONF, HOME, LAKE, submit

with DAG(
    dag_id="wirelake_daily",
    description="Maintain the lake and check its quality",
    schedule=os.environ.get("WIRELAKE_DAILY", "0 3 * * *"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's lock on the lake
    doc_md=__doc__,
    tags=["wirelake"],
) as dag:
    maintain = submit("maintain", "--maintain")
    wirelake = quote(f"{HOME}/.venv/bin/wirelake")
    settings = f" --conf {quote(CONF)}" if CONF else ""
    maintain >> BashOperator(task_id="check", bash_command=f"{wirelake} check --lake {quote(LAKE)}{settings}")
