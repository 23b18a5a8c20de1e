"""Makes the Spark session: the same under ``spark-submit``, in tests and from the command line."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from pipeline.errors import UserError
from pipeline.lake.permissions import current_umask
from pipeline.tables import UNLIKE

_SOURCES = Path(__file__).parents[3]
_QUIET_LOGS = tuple(
    folder / "conf" / "log4j2.properties" for folder in (_SOURCES, Path(sys.prefix, "share", "wirelake"))
)
"""Settings of the JVM's log: of a checkout, of an installed wheel."""

_FIXED = {
    # Delta Lake; its two jars are beside Spark's own (`wirelake setup`).
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # delta-rs and DuckDB read neither deletion vectors nor column mapping.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.columnMapping.mode": "none",
    # One meaning of a timestamp, wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
}

_SHORT = "/tmp"  # noqa: S108 - Spark's own choice, where it is not deep in the files of a container, as on YARN
"""Where sockets may be: the path of one has at most 107 bytes."""

_PRIVATE = r"(?i)secret|passw|token|credential|private|jaas|access[.]?key|account[.]?key|[.]sas[.]|[.]key([.]|$)"
"""Names of settings that may hold a secret; Spark's own default lacks Azure's account keys, among others."""

_DEFAULTS = {
    "spark.master": "local[2]",
    # What Spark shows of such settings, on its page and in event logs.
    "spark.redaction.regex": _PRIVATE,
    "spark.driver.memory": "2g",
    # The collector with the smallest footprint: heaps are small, and there is no core to spare for a concurrent one.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    # Whoever reaches its port sees plans and settings. Opened, it is for users of this machine (of a cluster: for all).
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM of a tiny table would otherwise plan 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    # Workers allocate columns of megabytes thousands of times. Arrow's allocator gives them back after 10 ms, and new
    # pages cost a sixth of what pairing and statements take. So it waits for 10 s, for a fifth more memory.
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "10000",
    # Not by TCP: Linux 6.17 and 6.18 drop acknowledgements that come while a receive buffer is full. A worker and the
    # JVM that both send much then wait for each other for good.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.unix.domain.socket.dir": _SHORT,
    # Less than half the size of snappy's, Spark's default; writing takes up to a tenth longer, reading no longer.
    "spark.sql.parquet.compression.codec": "zstd",
    # A batch holds one day, seldom several: files of each are written side by side, and no row is sorted by its day.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Each batch runs the same few hundred generated classes; the default of 100 compiles most of them every time.
    "spark.sql.codegen.cache.maxEntries": "2000",
    **{f"spark.hadoop.parquet.enable.dictionary#{column}": "false" for column in sorted(UNLIKE)},
}


_WORKERS_PATH = "spark.executorEnv.PYTHONPATH"
_LOOPBACK = "127.0.0.1"
_ONE_MACHINE = {
    # Defaults without a cluster: no look-up of the machine's name, no port that others can reach.
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}


def build_session(app_name: str, *, extra_conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the process's Spark session, made if there is none yet.

    Under ``spark-submit`` what is set there or in ``spark-defaults.conf`` wins over our defaults, ``extra_conf`` wins
    over both. Only the Delta settings, UTC and ANSI mode are not up for choice.

    Args:
        app_name: shown in Spark's logs and UI.
        extra_conf: Spark settings by name.

    Raises:
        UserError: the JVM does not find Delta Lake.
    """
    given, extra = _submitted(), extra_conf or {}
    settings = _settings(given, extra)
    for name, value in _environment({**given, **settings}["spark.master"]).items():
        os.environ.setdefault(name, value)
    if "spark.pyspark.python" in extra:
        os.environ["PYSPARK_PYTHON"] = extra["spark.pyspark.python"]  # spark-submit does the same with its settings
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _start_jvm(settings)
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not callable(session.sparkContext._jvm.io.delta.tables.DeltaTable):  # a package of that name, and no class
        session.stop()
        raise UserError(
            "Spark does not find Delta Lake: its two jars are missing, or this user cannot read them. Run "
            "`wirelake setup` as the user who installed pyspark."
        )
    return session


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM with what it must know from the start. Secrets are passed later: everybody reads command lines."""
    plain = [(key, value) for key, value in settings.items() if not re.search(_PRIVATE, key)]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(plain))


def _submitted() -> dict[str, str]:
    """The settings of ``spark-submit``; none if this process was not started by it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # connects to the JVM that runs already: only it knows them
    return dict(SparkConf().getAll())


def _settings(given: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """What to set, as far as ``spark-submit`` (``given``) did not."""
    defaults = {
        **_DEFAULTS,
        # Tables are in the lake, none here; Spark makes the folder all the same, and not where the user is.
        "spark.sql.warehouse.dir": f"{own_folder()}/warehouse",
        # Spark sets the modes of its files itself, by this, whatever umask it was started with.
        "spark.hadoop.fs.permissions.umask-mode": f"{current_umask():03o}",
    }
    if _is_local(extra.get("spark.master") or given.get("spark.master") or defaults["spark.master"]):
        defaults |= {**_ONE_MACHINE, "spark.python.unix.domain.socket.dir": own_folder()}
        if _SOURCES.is_dir() and _WORKERS_PATH not in {**given, **extra}:
            # Run from a checkout: Python workers find the same packages. A cluster has no checkout.
            known = os.environ.get("PYTHONPATH")
            defaults[_WORKERS_PATH] = f"{_SOURCES}{os.pathsep + known if known else ''}"
            defaults["spark.executorEnv.PYTHONSAFEPATH"] = "1"  # and not those in the folder of the job's user
            defaults["spark.python.daemon.module"] = "pipeline.streaming.spark.worker_daemon"
    return {**{key: value for key, value in defaults.items() if key not in given}, **extra, **_FIXED}


@cache
def own_folder() -> str:
    """A folder that no other user reads, which ends with this process: Spark leaves its sockets behind."""
    folder = tempfile.mkdtemp(prefix="wirelake-", dir=_SHORT)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _environment(master: str) -> dict[str, str]:
    """Defaults of what Spark takes from the environment only."""
    chosen = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    if _is_local(master):
        chosen |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": _LOOPBACK}
    else:  # ours is where no worker has it; what was packed for them fits this minor version only
        chosen |= {"PYSPARK_PYTHON": f"python{sys.version_info.major}.{sys.version_info.minor}"}
    if quiet := next(filter(Path.exists, _QUIET_LOGS), None):
        chosen["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={quiet}"
    return chosen


def _is_local(master: str) -> bool:
    return master.startswith("local")
