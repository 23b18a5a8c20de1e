"""The kernel under spark-submit, from zipped sources, in the Python workers that Spark forks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decoder import Codec
from pipeline.analysis.frames.plain import DECODED_COLUMNS, decode_rows
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import LANDING_COLUMNS
from tests.hostile.samples import made, recorded
from tests.paths import ROOT
from tests.requirements import require_java

pytestmark = pytest.mark.spark

JOB = """
import sys
from pyspark.sql import SparkSession
from pipeline.streaming.bronze.decode import decode_frames
import pipeline
assert ".zip" in pipeline.__file__, pipeline.__file__
spark = SparkSession.builder.getOrCreate()
landed = spark.read.parquet(sys.argv[1]).repartition(2)
decode_frames(landed, kernel_after=0).write.parquet(sys.argv[2])
"""


@pytest.mark.proof
def test_spark_workers_load_the_kernel_from_a_zip(tmp_path: Path) -> None:
    require_java()
    archive, job, landed = tmp_path / "code.zip", tmp_path / "job.py", tmp_path / "landed.parquet"
    with zipfile.ZipFile(archive, "w") as target:
        for package in ("decoder", "pipeline"):
            for path in (ROOT / package).rglob("*"):
                if path.suffix in (".py", ".json", ".sql"):
                    target.write(path, path.relative_to(ROOT))
    job.write_text(JOB)
    samples = [*recorded(), *made()]
    batch = pd.DataFrame(
        {
            "agent_id": "a", "connection_id": "c", "exchange_id": None, "seq": range(len(samples)),
            "direction": [s.direction for s in samples], "ts": pd.Timestamp("2026-01-01", tz="UTC"),
            "ts_end": pd.Timestamp("2026-01-01", tz="UTC"), "client_ip": "::1", "client_port": 1, "server_ip": "::1",
            "server_port": 2, "protocol": "kafka", "api_key": [s.api_key for s in samples],
            "api_version": [s.api_version for s in samples], "correlation_id": 7, "reply_to": None,
            "size": [len(s.data) for s in samples], "frame": [s.data for s in samples], "flags": 0, "flow_id": "f",
            "payload_policy": "full", "idle_us": None,
        }
    )  # fmt: skip
    rows = pa.RecordBatch.from_pandas(batch, arrow_schema(LANDING_COLUMNS))
    pq.write_table(pa.Table.from_batches([rows]), landed)
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--py-files", str(archive),
            "--properties-file", str(ROOT / "conf" / "spark-defaults.conf"), str(job), str(landed),
            str(tmp_path / "decoded"),
        ],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert list((tmp_path / "cache").rglob("*.o")), "the kernel was not compiled"
    decoded = pd.read_parquet(tmp_path / "decoded").sort_values("seq")
    expected = decode_rows(Codec(), rows)
    for column in DECODED_COLUMNS:
        found = [None if pd.isna(value) else value for value in decoded[column.name]]
        assert found == expected[column.name], column.name
