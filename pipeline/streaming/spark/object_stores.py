"""Tells Spark of the object stores that a job is given: endpoint, region, and how Delta commits there."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pipeline.errors import UserError
from pipeline.lake.s3 import S3Place
from pipeline.lake.store_advice import advised
from pipeline.streaming.spark.conditional_commits import commit_on_condition
from pipeline.streaming.spark.hadoop_objects import cause_of

_PROBE = {"fs.s3a.attempts.maximum": "2", "fs.s3a.retry.limit": "2"}
"""Settings of the first request: with Hadoop's own, a wrong endpoint is tried for two minutes."""


def connect(spark: SparkSession, *places: str) -> None:
    """Before anything of a lake or landing zone is opened: have Spark reach them, if they are in S3.

    Args:
        spark: the session.
        places: as the user wrote them.

    Raises:
        UserError: the store is out of reach; the message explains what to do.
    """
    for place in places:
        at = S3Place.of(place)
        if at is None:
            continue
        conf, bucket = spark.sparkContext._jsc.hadoopConfiguration(), f"fs.s3a.bucket.{at.bucket}"
        if at.endpoint is not None:
            conf.set(f"{bucket}.endpoint", at.endpoint)
            conf.set(f"{bucket}.path.style.access", "true")
        if at.region is not None:
            conf.set(f"{bucket}.endpoint.region", at.region)
        commit_on_condition(spark)
        probe = spark._jvm.org.apache.hadoop.conf.Configuration(conf)
        for name, value in _PROBE.items():
            probe.set(name, value)
        try:
            path = spark._jvm.org.apache.hadoop.fs.Path(f"{at.for_hadoop}/")
            files = spark._jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), probe)
            try:
                files.exists(path)
            finally:
                files.close()
        except Py4JError as error:
            raise UserError(f"cannot reach {at.for_hadoop}: {advised(cause_of(error))}") from error
