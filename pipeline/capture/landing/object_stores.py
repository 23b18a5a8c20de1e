"""An object store (``s3://``, and what pyarrow knows besides) as a landing zone.

Settings come from the URL's query and from what the store's own tools read (the environment, ~/.aws); credentials from
the latter alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from pipeline.capture.landing.stores import LandingError, LocalStore, Store
from pipeline.errors import UserError
from pipeline.lake.path_checks import is_lake, url_cut_short
from pipeline.lake.s3 import S3Place
from pipeline.lake.store_advice import advised

CONNECT_TIMEOUT_S = 10
REQUEST_TIMEOUT_S = 30
"""An attempt fails after this long without an answer, or without a byte moving."""

_BY_PYARROW = ("gs", "gcs", "abfs", "abfss")


def open_store(landing: str | Path | Store) -> Store:
    """The landing zone at a path or URL; a directory is made if it is not there, a bucket is not.

    Args:
        landing: a path, ``file:///path``, ``s3://bucket/prefix?endpoint=http://host:9000&region=eu-west-1`` (both
            parameters optional), ``gs://bucket/prefix``, or ``abfss://container@account.dfs.core.windows.net/prefix``;
            or a store, which stays what it is.

    Raises:
        LandingError: no such place, or it cannot be reached; the message shows no credentials.
    """
    if not isinstance(landing, (str, Path)):
        return landing
    text = str(landing)
    if "://" not in text:
        return _directory(text)
    url = urlsplit(text)
    if url.scheme == "file":
        return _directory(unquote(url.path))
    try:
        s3 = S3Place.of(text)
    except UserError as error:
        raise LandingError(f"--landing: {error}") from error
    if s3 is None and url.scheme not in _BY_PYARROW:
        raise LandingError(
            f"--landing: {url.scheme}:// is not supported; give a directory, s3://bucket/prefix, gs://bucket/prefix "
            "or abfss://container@account.dfs.core.windows.net/prefix"
        )
    if url.password is not None:
        raise LandingError("--landing: credentials do not belong into the URL, where every process list shows them")
    name = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
    try:
        filesystem, root = fs.FileSystem.from_uri(text) if s3 is None else _s3(s3)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LandingError(f"landing zone {name} cannot be used: {_one_line(error)}") from error
    return ObjectStore(filesystem, root, name)


def _directory(path: str) -> LocalStore:
    if not path.strip():  # rather a variable that is not set than the current directory
        raise LandingError(
            "--landing is empty: give a directory ('.' is the current one) or a URL as s3://bucket/prefix"
        )
    if problem := url_cut_short("--landing", path):
        raise LandingError(problem)
    if is_lake(path):
        raise LandingError(f"--landing {path}: that is a lake, not a landing zone; name another folder")
    return LocalStore(path)


class ObjectStore:
    """A bucket and prefix. An object appears with its last byte, under its own name; nothing is renamed.

    Raises:
        LandingError: the bucket does not exist or cannot be reached.
    """

    def __init__(self, filesystem: Any, root: str, name: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._name = name
        bucket = self._root.partition("/")[0]
        try:
            info = filesystem.get_file_info(bucket)
        except (OSError, pa.ArrowException) as error:
            raise self._error(error) from error
        if info.type != fs.FileType.Directory:
            raise LandingError(f"landing zone {name}: there is no bucket {bucket}; make it, or correct its name")

    def size(self, path: str) -> int | None:
        """See Store.size."""
        try:
            info = self._filesystem.get_file_info(f"{self._root}/{path}")
        except (OSError, pa.ArrowException) as error:
            raise self._error(error) from error
        return int(info.size) if info.type == fs.FileType.File else None

    def read(self, path: str) -> bytes | None:
        """See Store.read."""
        try:
            with self._filesystem.open_input_file(f"{self._root}/{path}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._error(error) from error

    def write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """See Store.write. Not closed after an error: closing is what makes an upload an object."""
        visible: list[str] = []
        try:
            for path, content in files:
                target = self._filesystem.open_output_stream(f"{self._root}/{path}")
                target.write(content)
                target.close()
                visible.append(path)
        except (OSError, pa.ArrowException) as error:
            with suppress(LandingError):  # the store may not answer, or not let us: that right is not required
                self._withdraw(visible, files[len(visible)][0])
            raise self._error(error) from error

    def _withdraw(self, announcing: Sequence[str], announced: str) -> None:
        """Remove objects that announce another, unless that has appeared though the store reported that it had not."""
        if self.size(announced) is not None:
            return
        try:
            for path in announcing:
                self._filesystem.delete_file(f"{self._root}/{path}")
        except (OSError, pa.ArrowException) as error:
            raise self._error(error) from error

    def clear_stale(self, agent_id: str) -> None:
        """See Store.clear_stale: nothing to do, because an upload that was never finished is not an object.

        Its parts are removed by the bucket's lifecycle rule for incomplete multipart uploads.
        """

    def _error(self, error: Exception) -> LandingError:
        return LandingError(f"landing zone {self._name} cannot be written: {advised(_one_line(error))}")


def _s3(place: S3Place) -> tuple[Any, str]:
    filesystem = fs.S3FileSystem(
        endpoint_override=place.endpoint,
        region=place.region,
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        allow_delayed_open=True,
    )
    return filesystem, f"{place.bucket}/{place.prefix}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
