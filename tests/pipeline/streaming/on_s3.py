"""Jobs on a lake in S3, each a process of its own: ``python -m tests.pipeline.streaming.on_s3 ENDPOINT WHAT …``.

``race FOLDER NUMBER…`` tries to make objects of a folder, in this order, and prints the numbers of those that it made;
``stream LANDING LAKE`` runs the job once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from pyspark.sql import SparkSession

from pipeline.errors import UserError
from pipeline.streaming.job import run_stream
from pipeline.streaming.spark.hadoop_objects import HadoopObjects
from pipeline.streaming.spark.session import build_session
from tests.brokers.maven import broker_libs
from tests.paths import ROOT
from tests.pipeline.capture.s3 import ACCESS_KEY, SECRET_KEY


def start(endpoint: str, *arguments: object) -> subprocess.Popen[str]:
    """Such a process."""
    command = [sys.executable, "-m", "tests.pipeline.streaming.on_s3", endpoint, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def session(endpoint: str) -> SparkSession:
    """Spark with Hadoop's connector."""
    jars = sorted(map(str, broker_libs("hadoop_aws").glob("*.jar")))
    s3a = {
        "endpoint": endpoint, "endpoint.region": "eu-west-1", "path.style.access": "true",
        "access.key": ACCESS_KEY, "secret.key": SECRET_KEY, "connection.ssl.enabled": "false",
    }  # fmt: skip
    conf = {"spark.master": "local[1]", "spark.driver.extraClassPath": os.pathsep.join(jars)}
    return build_session(
        "on S3", extra_conf={**conf, **{f"spark.hadoop.fs.s3a.{key}": one for key, one in s3a.items()}}
    )


def main(endpoint: str, what: str, *arguments: str) -> int:
    """See the module; 2 if the job refuses."""
    spark = session(endpoint)
    if what == "race":
        folder, *numbers = arguments
        objects = HadoopObjects(spark, folder)
        objects.names()  # connected before the race begins
        print("ready", flush=True)
        sys.stdin.readline()
        mine = [int(number) for number in numbers if objects.create(number, str(os.getpid()).encode())]
        print(json.dumps(mine))
        return 0
    landing, lake = arguments
    try:
        run_stream(landing, lake, once=True, spark=spark, progress=lambda text: print(text, flush=True))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
