"""Derives a range of days of the lake anew, by spark-submit of Wirelake's job.

Trigger it with a range, e.g. after a codec upgrade (``recode`` decodes the raw frames anew first)::

    airflow dags trigger wirelake_backfill --conf '{"date_from": "2026-11-01", "date_to": "2026-11-03", "recode": true}'

Where things are: see ``wirelake_job.py``.
"""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG, Param
from wirelake_job import submit

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
    submit(
        "backfill",
        "--backfill-from",
        "{{ params.date_from }}",
        "--backfill-to",
        "{{ params.date_to }}",
        "{{ '--recode' if params.recode else '--no-recode' }}",
    )
