"""The job on a Spark cluster, shipped as users ship it: bare workers, which get all they have from ``make archive``.

Master and two workers are Spark's own, from a Spark without Delta's jars; their Python has no packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable

from pipeline.setup import archive
from pipeline.setup.jars import DELTA_JARS
from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.tables import FRAMES, TABLES, Table
from tests.end_to_end.conftest import Demo
from tests.paths import ROOT
from tests.requirements import require_java

pytestmark = [pytest.mark.spark, pytest.mark.proof]

DEADLINE_S = 120
JARS = [jar.file_name for jar in DELTA_JARS]


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster.

    Attributes:
        folder: where the user is who submits; `dist` is in it.
        work: the workers' folders, each with the working folders of its executors.
    """

    url: str
    folder: Path
    spark_home: Path
    python: Path
    work: list[Path]

    @property
    def environment(self) -> dict[str, str]:
        return {**plain_environment(), "SPARK_HOME": str(self.spark_home)}

    @property
    def executors(self) -> list[Path]:
        return [folder for work in self.work for folder in sorted(work.glob("app-*/*"))]


def plain_environment() -> dict[str, str]:
    """Nothing that leads to this checkout."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK", "NUMBA"))}
    return {
        **kept,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED_JVM,
    }


def spark_without_delta(target: Path) -> Path:
    """A Spark as it is downloaded: the installed one, but for the jars that ``make setup`` put there."""
    installed = Path(pyspark.__file__).parent
    (target / "jars").mkdir(parents=True)
    for name in ("bin", "python"):
        (target / name).symlink_to(installed / name)
    for jar in (installed / "jars").iterdir():
        if jar.name not in JARS:
            (target / "jars" / jar.name).symlink_to(jar)
    return target


def started(log: Path, line: str, process: subprocess.Popen[bytes]) -> str:
    """What ``line`` captures in the log, once it is there."""
    for _ in range(DEADLINE_S * 5):
        if found := re.search(line, log.read_text(errors="replace")):
            return found[1]
        assert process.poll() is None, log.read_text(errors="replace")
        time.sleep(0.2)
    raise AssertionError(f"no {line!r} in {log.read_text(errors='replace')}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_java()
    folder = tmp_path_factory.mktemp("cluster")
    home = spark_without_delta(folder / "spark")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    work = [folder / "worker-1", folder / "worker-2"]
    with ExitStack() as stack:
        # Each executor has unpacked half a gigabyte; pytest would keep it for three more runs.
        stack.callback(lambda: [shutil.rmtree(path, ignore_errors=True) for path in (*work, folder / "dist")])

        def start(name: str, line: str, *arguments: str) -> str:
            log = folder / f"{name}.log"
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}"]
            command += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments[1:]]
            environment = {**plain_environment(), "SPARK_HOME": str(home), "HOME": str(folder / "home")}
            process = subprocess.Popen(
                command, stdout=log.open("wb"), stderr=subprocess.STDOUT, cwd=folder, env=environment
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            return started(log, line, process)

        url = start("master", r"(spark://127\.0\.0\.1:\d+)", "master.Master")
        for path in work:
            start(
                path.name, r"Successfully (registered) with master",
                "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(path), url,
            )  # fmt: skip
        assert archive.main([str(folder / "dist")]) == 0
        yield Cluster(url, folder, home, folder / "bare" / "bin" / "python", work)


@pytest.fixture(scope="module")
def lake(cluster: Cluster, demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cluster made of the demo's landing zone, with conf/cluster.yaml but for this machine's size."""
    lake = tmp_path_factory.mktemp("cluster-lake") / "lake"
    here = {
        "spark.master": cluster.url,
        "spark.pyspark.python": str(cluster.python),
        "spark.executor.cores": 1,
        "spark.executor.memory": "700m",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": SHORT_LIVED_JVM,
        "spark.sql.shuffle.partitions": 2,
        "spark.databricks.delta.snapshotPartitions": 1,
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": 4,
        # No task before both workers are there.
        "spark.cores.max": 2,
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{DEADLINE_S}s",
    }
    done = subprocess.run(
        [
            str(cluster.spark_home / "bin" / "spark-submit"), "--master", cluster.url,
            "--jars", ",".join(f"dist/{name}" for name in JARS), "--driver-java-options", SHORT_LIVED_JVM,
            str(ROOT / "pipeline" / "streaming" / "job.py"), "--conf", str(ROOT / "conf" / "cluster.yaml"),
            "--landing", str(demo.landing), "--lake", str(lake), "--once",
        ],
        capture_output=True, text=True, check=False, cwd=cluster.folder,
        env={
            **cluster.environment, "PYSPARK_DRIVER_PYTHON": sys.executable, "WIRELAKE_SPARK": json.dumps(here),
            "WIRELAKE_STREAM__KERNEL_AFTER_FRAMES": "0",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return lake


def rows(lake: Path, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(lake / table.path)).to_pyarrow_table().to_pylist()
    return sorted(found, key=repr)


def test_the_cluster_makes_the_tables_that_one_machine_makes(lake: Path, demo_lake: Path) -> None:
    assert rows(lake, FRAMES)
    for name, table in TABLES.items():
        if not name.startswith("ops."):
            assert rows(lake, table) == rows(demo_lake, table), name


@pytest.mark.usefixtures("lake")
def test_both_workers_read_frames_with_the_kernel_that_was_shipped_and_compile_nothing(cluster: Cluster) -> None:
    with zipfile.ZipFile(cluster.folder / "dist" / archive.CODE) as code:
        shipped = {name: code.getinfo(name).file_size for name in code.namelist() if name.startswith(archive.KERNEL)}
    assert any(name.endswith(".o") for name in shipped)
    assert len(cluster.executors) == len(cluster.work), "an executor died, or a worker has none"
    kernels = set()
    for executor in cluster.executors:
        assert re.search(r"Running task \d", (executor / "stderr").read_text(errors="replace")), executor
        unpacked = executor / "wirelake-code"
        assert list(unpacked.glob("decoder/kafka/kernel/__pycache__/bodies.*.pyc")), "the kernel was not imported"
        files = [path for path in (unpacked / archive.KERNEL).rglob("*") if path.is_file()]
        assert {str(path.relative_to(unpacked)): path.stat().st_size for path in files} == shipped
        kernels |= {path.parent for path in files}
    assert {path for path in cluster.folder.rglob("kernel-*") if path.is_dir()} == kernels, "compiled elsewhere"
