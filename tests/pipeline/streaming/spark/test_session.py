"""Which Spark settings we choose: on one machine, on a cluster, and where the user chose."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from pipeline.streaming.spark.session import _environment, _settings
from tests.paths import ROOT
from tests.requirements import require_java

CHECKOUT = "spark.executorEnv.PYTHONPATH"
HOST = "spark.driver.host"
DAEMON = "spark.python.daemon.module"
SOCKETS = "spark.python.unix.domain.socket.dir"


@pytest.mark.parametrize("given", [{}, {"spark.master": "local[*]"}])
def test_on_one_machine_workers_find_the_checkout_and_nothing_listens_outside(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/more")
    settings = _settings(given, {})
    assert (settings[CHECKOUT], settings[HOST]) == (f"{ROOT}:/more", "127.0.0.1")
    assert settings[DAEMON] == "pipeline.streaming.spark.worker_daemon"
    environment = _environment(settings.get("spark.master", "local[*]"))
    assert (environment["PYSPARK_PYTHON"], environment["SPARK_LOCAL_IP"]) == (sys.executable, "127.0.0.1")


@pytest.mark.parametrize("by_submit", [True, False])
def test_on_a_cluster_nothing_of_this_machine_is_set(by_submit: bool) -> None:
    master = {"spark.master": "spark://far-away:7077"}
    settings = _settings(*((master, {}) if by_submit else ({}, master)))
    assert not {CHECKOUT, HOST, DAEMON, "spark.driver.bindAddress"} & set(settings)
    environment = _environment(master["spark.master"])
    assert environment["PYSPARK_PYTHON"] == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    assert "SPARK_LOCAL_IP" not in environment


def test_sockets_lie_where_their_path_is_short_and_go_with_the_process() -> None:
    assert _settings({"spark.master": "yarn"}, {})[SOCKETS] == "/tmp"  # noqa: S108
    folder = Path(_settings({}, {})[SOCKETS])
    assert folder.is_dir()
    assert len(str(folder)) <= 61, "the most that Spark takes"
    script = "from pipeline.streaming.spark.session import _settings; print(_settings({}, {})['" + SOCKETS + "'])"
    ended = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    assert ended.startswith("/tmp/wirelake-")  # noqa: S108
    assert not Path(ended).exists()


def test_what_is_chosen_wins_the_settings_over_spark_submit_but_not_what_delta_needs() -> None:
    given = {"spark.master": "yarn", "spark.driver.memory": "9g", "spark.sql.session.timeZone": "CET", CHECKOUT: "deps"}
    settings = _settings(given, {"spark.sql.shuffle.partitions": "7", "spark.sql.ansi.enabled": "false"})
    assert not {"spark.master", "spark.driver.memory", CHECKOUT} & set(settings), "spark-submit's stay"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.sql.ansi.enabled"] == "true"


def test_a_path_of_the_users_own_for_workers_leaves_their_daemon_alone() -> None:
    settings = _settings({"spark.master": "local[2]"}, {CHECKOUT: "deps"})
    assert settings[CHECKOUT] == "deps"
    assert DAEMON not in settings


def _families(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The address families of a worker's open sockets."""
    list(batches)
    found = set()
    for opened in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(opened.name))) as one:
            found.add(one.family.name)
    yield pa.RecordBatch.from_pylist([{"family": family} for family in sorted(found)])


def test_no_page_of_spark_is_open_unless_asked_for(spark: SparkSession) -> None:
    assert spark.sparkContext.uiWebUrl is None


OPENED = """
import os, urllib.request
from pathlib import Path
from pipeline.streaming.spark.session import build_session

secrets = {
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net": "canary-one",
    "spark.hadoop.fs.s3a.secret.key": "canary-two",
}
spark = build_session("opened", extra_conf={"spark.ui.enabled": "true", "spark.ui.port": "0", **secrets})
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
assert [hadoop.get(name.removeprefix("spark.hadoop.")) for name in secrets] == ["canary-one", "canary-two"]
page = spark.sparkContext._jsc.sc().uiWebUrl().get()
name = spark.sparkContext.applicationId
environment = urllib.request.urlopen(f"{page}/api/v1/applications/{name}/environment").read()
assert b"account.key.lake" in environment and b"canary" not in environment
lines = b"".join(file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists())
assert b"spark.ui.port" in lines and b"canary-" not in lines
port = f"{int(page.rpartition(':')[2]):04X}"
listening = [
    line.split()[1] for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]
    if line.split()[3] == "0A" and line.split()[1].endswith(":" + port)
]
print(listening)
"""


@pytest.mark.slow
def test_secrets_in_settings_are_on_no_command_line_and_not_on_sparks_page_which_is_for_this_machine() -> None:
    require_java()
    done = subprocess.run([sys.executable, "-"], input=OPENED, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (address,) = eval(done.stdout)  # noqa: S307 - what we printed
    assert address.rpartition(":")[0] in ("0100007F", "0000000000000000FFFF00000100007F"), "loopback"


def test_workers_and_the_jvm_do_not_talk_by_tcp(spark: SparkSession) -> None:
    families = spark.range(1, numPartitions=1).mapInArrow(_families, "family string").collect()
    assert [row.family for row in families] == ["AF_UNIX"]


def test_no_dictionary_is_begun_for_what_differs_from_row_to_row(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT id AS ts, 'same' AS api_name FROM range(10)").coalesce(1)
    rows.write.parquet(str(tmp_path / "rows"))
    (file,) = (tmp_path / "rows").glob("*.parquet")
    row_group = pq.ParquetFile(file).metadata.row_group(0)
    assert [row_group.column(number).has_dictionary_page for number in range(2)] == [False, True]


def test_tables_are_compressed_by_zstd(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).write.format("delta").save(str(tmp_path / "rows"))
    file = next((tmp_path / "rows").glob("*.parquet"))
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.spark
def test_a_spark_without_delta_is_a_sentence(tmp_path: Path) -> None:
    require_java()
    spark, home = Path(pyspark.__file__).parent, tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    for path in (path for path in spark.iterdir() if path.name != "jars"):
        (home / path.name).symlink_to(path)
    for path in (path for path in (spark / "jars").iterdir() if not path.name.startswith("delta-")):
        (home / "jars" / path.name).symlink_to(path)
    code = "from pipeline.streaming.spark.session import build_session; build_session('test')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "UserError: Spark does not find Delta Lake" in done.stderr
