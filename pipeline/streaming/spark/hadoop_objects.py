"""Objects of a folder by Hadoop's file systems (``s3a://``, ``abfss://``, …), as Spark's driver knows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class HadoopObjects:
    """The objects of a folder, by its URI."""

    spark: SparkSession
    folder: str

    def names(self) -> list[str]:
        """Of all objects; none where there is no such folder."""
        with _errors(self.folder):
            files = self._files()
            if not files.exists(self._path()):
                return []
            return [str(status.getPath().getName()) for status in files.listStatus(self._path())]

    def read(self, name: str) -> bytes | None:
        """The content of an object; None: there is no such object."""
        with _errors(f"{self.folder}/{name}"):
            files, path = self._files(), self._path(name)
            if not files.exists(path):
                return None
            stream = files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def create(self, name: str, content: bytes) -> bool:
        """Make an object unless there is one of this name. Of several who try at once one succeeds.

        S3A sends the condition only where this option asks for it (HADOOP-19256); else it looks whether there is one,
        and makes it afterwards. File systems that do not know the option make files on this condition always.
        """
        try:
            made = self._files().createFile(self._path(name)).overwrite(False).recursive()
            self._write(made.opt("fs.option.create.conditional.overwrite", True).build(), content)
        except Py4JError as error:
            found = self.read(name)
            if found is None:  # it was refused for another reason
                raise OSError(f"{self.folder}/{name} cannot be written: {cause_of(error)}") from error
            return found == content  # or what was sent again by the client of the store was there already
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Give an object another content."""
        with _errors(f"{self.folder}/{name}"):
            self._write(self._files().create(self._path(name), True), content)

    def remove(self, name: str) -> None:
        """Remove an object."""
        with _errors(f"{self.folder}/{name}"):
            self._files().delete(self._path(name), False)

    @staticmethod
    def _write(stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
        except Py4JError:
            with suppress(Py4JError):
                stream.abort()
            raise
        stream.close()

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm

    def _path(self, name: str = "") -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.folder}/{name}" if name else self.folder)

    def _files(self) -> Any:
        return self._path().getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())


@contextmanager
def _errors(place: str) -> Iterator[None]:
    """Around calls of the file system, whose errors are OSErrors then."""
    try:
        yield
    except Py4JError as error:
        raise OSError(f"cannot reach {place}: {cause_of(error)}") from error


def cause_of(error: Py4JError) -> str:
    """Java's message, without its trace."""
    exception = getattr(error, "java_exception", None)
    return str(exception.toString() if exception is not None else error).splitlines()[0]
