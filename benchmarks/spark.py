"""What does decoding cost inside Spark, and how much later is the first job ready? Wall-clock time on two cores."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from benchmarks import traffic
from benchmarks.candidates import CONSOLE
from pipeline.capture.runs.reading import read_capture
from pipeline.streaming.bronze.decode import decode_frames
from pipeline.streaming.spark.session import build_session

if TYPE_CHECKING:
    import pandas as pd

NEVER = 1 << 62
"""More frames than any worker reads."""


def main() -> None:
    """Decode a minute of load to nowhere: by the kernel twice in new Python workers, then beside the plain reader."""
    with tempfile.TemporaryDirectory() as landing:
        read_capture([traffic.capture()], landing)
        spark = build_session("benchmark", extra_conf={"spark.master": "local[2]"})
        try:
            landed = spark.read.parquet(f"{landing}/date=*")
            CONSOLE.print(f"\nIn Spark, local[2], workers that stay from job to job: {landed.count():,} frames")
            ways: list[tuple[str, Callable[[], DataFrame]]] = [
                ("identity mapInPandas, Python workers started", lambda: landed.mapInPandas(identity, landed.schema)),
                ("kernel, first job: loads its compiled code", lambda: decode_frames(landed, kernel_after=0)),
                ("kernel, second job", lambda: decode_frames(landed, kernel_after=0)),
                ("kernel, third job", lambda: decode_frames(landed, kernel_after=0)),
                ("identity mapInPandas", lambda: landed.mapInPandas(identity, landed.schema)),
                ("plain reader", lambda: decode_frames(landed, kernel_after=NEVER)),
            ]
            for name, way in ways:
                begun = time.monotonic()
                way().write.format("noop").mode("overwrite").save()
                CONSOLE.print(f"  {name}: {time.monotonic() - begun:.1f} s")
        finally:
            spark.stop()


def identity(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """What mapInPandas costs when nothing is done."""
    yield from batches
