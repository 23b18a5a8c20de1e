"""What is in a landing zone: which files, how large, with which content. Nothing that is opened is trusted."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.capture.landing.manifests import MOST_BYTES, MOST_MANIFEST_BYTES
from pipeline.lake.arrow import arrow_schema
from pipeline.metrics.backlog import Listed
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.new_files import literally
from pipeline.tables import Column

_LISTED = re.compile(
    r"/([A-Za-z0-9][A-Za-z0-9_.-]*)\.(?:parquet|json); isDirectory=false; length=([1-9]\d*);"
    r"[^}]*? modification_time=(\d+)"
)
_LOOKS_AT_ONCE = 8
"""At an object store each takes its time."""
_PIECE = 1 << 20

Content = tuple["bytes | None", str]
"""Of a manifest the content, of another file None; and the SHA-256 of either."""


def sizes_of(spark: SparkSession, paths: Iterable[str]) -> list[int | None]:
    """Bytes of the file at each path; None: there is none."""
    context = spark.sparkContext
    conf, path_of = context._jsc.hadoopConfiguration(), context._jvm.org.apache.hadoop.fs.Path

    def look(path: str) -> int | None:
        place = path_of(path)
        files = place.getFileSystem(conf)
        return int(files.getFileStatus(place).getLen()) if files.exists(place) else None

    return side_by_side(*(partial(look, path) for path in paths), at_once=_LOOKS_AT_ONCE)


def files_in(spark: SparkSession, root: str, pattern: str) -> dict[str, Listed]:
    """The files at places in a landing zone that fit a pattern, by name without ending; but empty ones."""
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{literally(root)}/{pattern}")
    found = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).globStatus(path)
    listed = _LISTED.findall(jvm.org.apache.commons.lang3.ArrayUtils.toString(found))  # one answer for all
    return {name: Listed(int(size), int(modified_ms)) for name, size, modified_ms in listed}


def contents(spark: SparkSession, paths: Collection[str]) -> dict[str, Content]:
    """Content and digest of files by path; one that goes away meanwhile is left out.

    Where this process computes as well as Spark's workers would, it reads local files itself: a Spark job less a batch.

    Raises:
        OSError, PySparkException, Py4JError: a file that is there cannot be read for now (rights, network).
    """
    is_alone = str(spark.sparkContext.master).startswith("local")
    if is_alone and all("://" not in _bare(path) for path in paths):
        return contents_here(paths)
    return contents_by_workers(spark, paths)


def contents_here(paths: Collection[str]) -> dict[str, Content]:
    """As :func:`contents`, of local files, by this process."""
    read = side_by_side(*(partial(_content_here, path) for path in paths))
    return {path: content for path, content in zip(paths, read, strict=True) if content is not None}


def _content_here(path: str) -> Content | None:
    is_manifest = path.endswith(".json")
    left = MOST_MANIFEST_BYTES if is_manifest else MOST_BYTES  # it may grow meanwhile
    digest, kept = hashlib.sha256(), b""
    try:
        if not Path(_bare(path)).is_file():
            return None
        with open(_bare(path), "rb", opener=_without_waiting) as file:
            while left and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                digest.update(piece)
                if is_manifest:
                    kept += piece
    except FileNotFoundError:
        return None
    return (kept if is_manifest else None), digest.hexdigest()


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe, should somebody put one there, would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def contents_by_workers(spark: SparkSession, paths: Collection[str]) -> dict[str, Content]:
    """As :func:`contents`, by Spark's workers."""
    if not paths:
        return {}
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("ignoreMissingFiles", "true")
    try:
        files = reader.load([literally(path) for path in paths])
    except AnalysisException:  # the option counts from here on only
        sizes = zip(paths, sizes_of(spark, paths), strict=True)
        left = [path for path, size in sizes if size is not None]
        if len(left) == len(paths):
            raise
        return contents_by_workers(spark, left)
    is_manifest = F.col("path").endswith(".json")
    rows = files.select(
        "path", F.when(is_manifest, F.col("content")).alias("content"), F.sha2("content", 256).alias("sha256")
    )
    found = {_bare(row.path): row for row in rows.collect()}
    return {
        path: (None if row.content is None else bytes(row.content), row.sha256)
        for path in paths
        if (row := found.get(_bare(path))) is not None
    }


def arrow_reads(spark: SparkSession, path: str, columns: Iterable[Column]) -> bool:
    """Whether Arrow, too, reads a file as Parquet with these columns: a verdict about its bytes, whatever ails Spark.

    Raises:
        PySparkException, Py4JError: the bytes cannot be had for now.
    """
    rows = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(literally(path)).select("content")
    judged = rows.mapInArrow(partial(_judge, arrow_schema(tuple(columns))), "is_good boolean").collect()
    return all(row.is_good for row in judged)


def _judge(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        good = [_is_parquet(content.as_buffer(), schema) for content in batch["content"]]
        yield pa.RecordBatch.from_arrays([pa.array(good, pa.bool_())], ["is_good"])


def _is_parquet(content: pa.Buffer, schema: pa.Schema) -> bool:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        held = file.schema_arrow
        if any(name in held.names and held.field(name).type != schema.field(name).type for name in schema.names):
            return False
        for _ in file.iter_batches(columns=[name for name in schema.names if name in held.names]):
            pass
    except (pa.ArrowException, OSError, ValueError):
        return False
    return True


def _bare(path: str) -> str:
    """A path of a local file without its scheme, which Hadoop writes in another way than we."""
    return re.sub(r"^file:/+", "/", path)
