"""Once a day: maintenance of the lake, then its quality checks, whose critical failures fail the run.

``maintain`` compacts small files and drops rows that are older than their table keeps; a stream that runs on the lake
does it between two of its batches. ``check`` writes to ``ops.quality_results``; when it fails, its log lists the checks
that failed and the queries that list their rows.

``WIRELAKE_DAILY`` is the hour as cron writes it (default: 3:00 UTC). Where things are: see ``wirelake_tasks.py``.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.sdk import DAG
from wirelake_tasks import CONF, DEFAULTS, LAKE, command, log_failed_checks, submit

with DAG(
    dag_id="wirelake_daily",
    description="Maintain the lake and check its quality",
    schedule=os.environ.get("WIRELAKE_DAILY", "0 3 * * *"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's lock on the lake
    default_args=DEFAULTS,
    doc_md=__doc__,
    tags=["wirelake"],
) as dag:
    check = command("check", "check", "--lake", LAKE, *CONF, on_failure_callback=log_failed_checks)
    submit("maintain", "--maintain") >> check
