"""Tells Spark of the object stores that a job is given: endpoint, region, and how Delta commits there."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pipeline.errors import UserError
from pipeline.lake.s3 import S3Place
from pipeline.lake.store_advice import advised
from pipeline.streaming.spark.conditional_commits import commit_on_condition
from pipeline.streaming.spark.hadoop_objects import cause_of


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
        try:
            path = spark._jvm.org.apache.hadoop.fs.Path(f"{at.for_hadoop}/")
            path.getFileSystem(conf).exists(path)
        except Py4JError as error:
            raise UserError(f"cannot reach {at.for_hadoop}: {advised(cause_of(error))}") from error
