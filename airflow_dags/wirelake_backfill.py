"""Rebuild the tables of a range of days from the raw frames, by spark-submit of Wirelake's job.

By Airflow's own backfill, a run a day, which shows what is done and what failed::

    airflow backfill create --dag-id wirelake_backfill --from-date 2026-11-01 --to-date 2026-11-03

or in one run, e.g. after a codec upgrade (``recode`` decodes the raw frames again first)::

    airflow dags trigger wirelake_backfill --conf '{"date_from": "2026-11-01", "date_to": "2026-11-03", "recode": true}'

Airflow can only backfill a DAG that has a schedule; the daily run of that schedule is skipped, since the stream has
derived the day already. Where things are: see ``wirelake_tasks.py``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowSkipException
from wirelake_tasks import DEFAULTS, submit

with DAG(
    dag_id="wirelake_backfill",
    description="Rebuild the tables of a range of days",
    schedule="@daily",
    start_date=datetime(2020, 1, 1),
    catchup=False,
    max_active_runs=1,  # two runs would wait for each other's lock on the lake
    default_args=DEFAULTS,
    doc_md=__doc__,
    tags=["wirelake"],
    params={
        "date_from": Param(None, type=["null", "string"], format="date", description="First day, UTC"),
        "date_to": Param(None, type=["null", "string"], format="date", description="Last day, inclusive"),
        "recode": Param(False, type="boolean", description="Decode the raw frames again first"),
    },
) as dag:

    @task
    def days(dag_run: Any = None, params: dict[str, Any] | None = None) -> dict[str, str]:
        """First and last day: what the run was triggered with, or the day that a backfill is at.

        Raises:
            AirflowSkipException: the run is neither.
        """
        asked = params or {}
        if asked.get("date_from"):
            return {"first": asked["date_from"], "last": asked.get("date_to") or asked["date_from"]}
        if str(getattr(dag_run.run_type, "value", dag_run.run_type)) != "backfill":
            raise AirflowSkipException("neither a backfill nor triggered with date_from: nothing to rebuild")
        day = dag_run.data_interval_start.strftime("%Y-%m-%d")
        return {"first": day, "last": day}

    chosen = days()
    rebuilt = submit(
        "backfill",
        "--backfill-from",
        "{{ ti.xcom_pull('days')['first'] }}",
        "--backfill-to",
        "{{ ti.xcom_pull('days')['last'] }}",
        "{{ '--recode' if params.recode else '--no-recode' }}",
    )
    chosen >> rebuilt
