"""Once an hour: all landing files that have arrived go into the lake (``wirelake stream --once``).

For a lake that no stream runs on all the time. Exit code 3, landing files that were set aside, fails the run;
everything else is in the lake. Where things are: see ``wirelake_tasks.py``.
"""

from __future__ import annotations

import os
from datetime import datetime

from airflow.sdk import DAG
from wirelake_tasks import DEFAULTS, LANDING, submit

with DAG(
    dag_id="wirelake_ingest",
    description="Read what has landed into the lake",
    schedule=os.environ.get("WIRELAKE_INGEST", "@hourly"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one stream a lake
    default_args=DEFAULTS,
    doc_md=__doc__,
    tags=["wirelake"],
) as dag:
    submit("ingest", "--landing", LANDING, "--once")
