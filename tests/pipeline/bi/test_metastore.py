"""`wirelake register` puts a lake into a Hive metastore (in Derby), from which another Spark reads it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.dashboard.sql import query
from tests.paths import ROOT
from tests.requirements import require_java

pytestmark = [pytest.mark.proof, pytest.mark.spark]
_ASK = """
import json, sys
from pathlib import Path
from pipeline.bi.catalog import tables_in
from pipeline.errors import UserError
from pipeline.streaming.operations.catalog import register
from pipeline.streaming.spark.session import build_session
conf, lake, other = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
spark = build_session("ask", extra_conf={**conf, "spark.sql.catalogImplementation": "hive"})
try:
    register(spark, other, tables_in(other), "acme_")
    refused = ""
except UserError as error:
    refused = str(error)
again = register(spark, lake, tables_in(lake), "acme_")
print(json.dumps({
    "refused": refused,
    "again": again,
    "findings": spark.table("acme_gold.findings").count(),
    "lag": spark.table("acme_views.consumer_lag").count(),
    "comment": [row[2] for row in spark.sql("DESCRIBE acme_gold.findings").collect() if row[0] == "rule"],
}))
"""


def test_another_spark_finds_tables_views_and_comments(small: Path, tmp_path: Path) -> None:
    require_java()
    lake, other = tmp_path / "lake", tmp_path / "other"
    shutil.copytree(small / "gold", lake / "gold")
    shutil.copytree(lake, other)
    place = tmp_path / "metastore"
    conf = {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place};create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps({"spark": conf}))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "wirelake", "register", "--lake", str(lake), "--conf", str(settings)]
    done = subprocess.run(
        [*command, "--prefix", "acme_"], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "are in the catalog" in done.stdout
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, json.dumps(conf), str(lake), str(other)],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout.splitlines()[-1])
    assert "the catalog has a table acme_gold." in found["refused"]
    assert found["again"][0] == len(list((lake / "gold").iterdir()))
    assert found["findings"] == query(lake, "FROM gold.findings").num_rows
    assert found["lag"] == query(lake, "FROM consumer_lag").num_rows > 0
    assert found["comment"] == ["Name of the rule"]
