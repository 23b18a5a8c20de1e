"""What a batch of landing files was to write: noted before it is written, so that a replay finds what is in bronze.

Between a crash and the replay files may go, come back or be damaged, and Spark does not even name those that are gone:
whether the rows of a file are in bronze then follows from the decision, if the append behind it was done.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.capture.landing.manifests import Kind, Manifest
from pipeline.streaming.landing.checked_files import SetAside
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.new_files import NewFile
from pipeline.streaming.storage.sinks import Batch

_PLACE = "wirelake/decision.json"
"""In the query's checkpoint: one is enough, as a batch begins when the one before is done."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Which files of a batch are read.

    Attributes:
        good: those, with the rows that their manifests state; 0 where there is none.
        set_aside: the others. Once set aside, a file stays so, though it be readable again.
    """

    good: tuple[NewFile, ...]
    set_aside: tuple[SetAside, ...]


def save_decision(spark: SparkSession, lake: Lake, kind: Kind, batch: Batch, decision: Decision) -> None:
    """Note the decision of a batch."""
    noted = {"checkpoint": batch.checkpoint_id, "batch": batch.number, **asdict(decision)}
    content = json.dumps(noted).encode()
    place = f"{lake.checkpoint(kind)}/{_PLACE}"
    if lake.is_local:
        path = Path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        return
    path_of = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(place)
    target = path_of.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).create(path_of, True)
    target.write(content)
    target.close()  # only now it is an object


def saved_decision(spark: SparkSession, lake: Lake, kind: Kind, batch: Batch) -> Decision | None:
    """The decision of an earlier try of a batch; None: there was none."""
    if not batch.may_repeat:
        return None
    content = _content(spark, lake, f"{lake.checkpoint(kind)}/{_PLACE}")
    noted = json.loads(content) if content is not None else {}
    if (noted.get("checkpoint"), noted.get("batch")) != (batch.checkpoint_id, batch.number):
        return None
    aside = (
        SetAside(
            NewFile(**one["file"]),
            one["status"],
            one["reason"],
            Manifest(**one["manifest"]) if one["manifest"] else None,
        )
        for one in noted["set_aside"]
    )
    return Decision(tuple(NewFile(**file) for file in noted["good"]), tuple(aside))


def _content(spark: SparkSession, lake: Lake, place: str) -> bytes | None:
    if lake.is_local:
        path = Path(place)
        return path.read_bytes() if path.exists() else None
    jvm = spark.sparkContext._jvm
    path_of = jvm.org.apache.hadoop.fs.Path(place)
    files = path_of.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(path_of):
        return None
    source = files.open(path_of)
    try:
        return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(source))
    finally:
        source.close()
