"""Reads the landing zone as a stream of the Parquet files that are new in it: of their names, sizes and times.

The stream opens none of them: one that is damaged or gone would stop it. (See pipeline.streaming.bronze.intake.)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import UserError
from pipeline.lake.s3 import S3Place
from pipeline.streaming.storage.new_files import literally, with_metadata


class LandingError(UserError):
    """Raised when the landing zone cannot be read; the message explains what to do."""


@dataclass(frozen=True, slots=True)
class Landing:
    """A landing zone by the URI or path of its root."""

    root: str

    @classmethod
    def at(cls, root: str | Path) -> Landing:
        """The landing zone at ``root``.

        Raises:
            LandingError: a local folder that does not exist.
        """
        text = str(root)
        if (s3 := S3Place.of(text)) is not None:
            return cls(s3.for_hadoop)
        if "://" in text:
            return cls(text.rstrip("/"))
        path = Path(text).absolute()
        if not path.is_dir():
            raise LandingError(
                f"{path} is not a folder: name the one that `wirelake capture … --landing` writes to, "
                "or fill one with `wirelake capture read FILE --landing DIR`"
            )
        return cls(str(path))

    def frames(self, spark: SparkSession, max_files: int) -> DataFrame:
        """A stream of :mod:`new_files` with landed frames. Files under way start with a dot: Spark skips them."""
        return self._stream(spark, "date=*", max_files)

    def gaps(self, spark: SparkSession, max_files: int) -> DataFrame:
        """A stream of :mod:`new_files` with losses in the capture."""
        return self._stream(spark, "gap*", max_files)

    def _stream(self, spark: SparkSession, folder: str, max_files: int) -> DataFrame:
        # A glob, because a folder that does not exist yet would be an error; no partition columns from folder names,
        # because `date` follows from `ts`.
        return (
            spark.readStream.format("binaryFile")
            .schema("path string, modificationTime timestamp, length bigint, content binary")  # as Spark has it
            .option("ignoreMissingFiles", "true")
            .option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "*.parquet")
            .option("maxFilesPerTrigger", max_files)
            .option("maxFileAge", "36500d")  # by default Spark skips, silently, files a week older than the newest
            .load(f"{literally(self.root)}/{folder}")
            .select(*with_metadata())
        )
