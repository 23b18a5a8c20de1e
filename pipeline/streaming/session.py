"""How is the Spark session made? The same under ``spark-submit``, in tests and from the command line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

_SOURCES = Path(__file__).parents[2]
_QUIET_LOG = _SOURCES / "conf" / "log4j2.properties"

_FIXED = {
    # Delta Lake; its two jars lie beside Spark's own (`python -m pipeline.setup`).
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # delta-rs and DuckDB read neither deletion vectors nor column mapping.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    "spark.databricks.delta.properties.defaults.columnMapping.mode": "none",
    # One meaning of a timestamp, wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
}

_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # The collector with the smallest footprint: heaps are small, and there is no core to spare for a concurrent one.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM of a tiny table would otherwise plan 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    # A batch holds one day, seldom several: files of each are written side by side, and no row is sorted by its day.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Tables lie in the lake, none here; Spark makes the folder all the same, and not where the user stands.
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "wirelake-warehouse"),
    # Each batch runs the same few hundred generated classes; the default of 100 compiles most of them every time.
    "spark.sql.codegen.cache.maxEntries": "2000",
}


def build_session(app_name: str, *, extra_conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the process's Spark session, made if there is none yet.

    Under ``spark-submit`` (and with ``SPARK_CONF_DIR``/``spark-defaults.conf``) what is set there wins over our
    defaults, ``extra_conf`` wins over both. Only the Delta settings, UTC and ANSI mode are not up for choice.

    Args:
        app_name: shown in Spark's logs and UI.
        extra_conf: Spark settings by name.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", _DEFAULTS["spark.driver.host"])
    if _QUIET_LOG.exists():
        os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={_QUIET_LOG}")
    from pyspark import SparkConf  # noqa: PLC0415 - reads the environment set above

    given = SparkConf()  # spark-submit's settings arrive as JVM properties, visible to a default SparkConf
    builder = SparkSession.builder.appName(app_name)
    for key, value in _DEFAULTS.items():
        if not given.contains(key):
            builder = builder.config(key, value)
    if _SOURCES.is_dir():  # run from a checkout: Python workers find the same packages
        known = os.environ.get("PYTHONPATH")
        builder = builder.config("spark.executorEnv.PYTHONPATH", f"{_SOURCES}{os.pathsep + known if known else ''}")
    for key, value in {**_FIXED, **(extra_conf or {})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
