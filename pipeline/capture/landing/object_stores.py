"""An object store (``s3://``, and what pyarrow knows besides) as a landing zone.

Settings come from the URL's query and from what the store's own tools read (the environment, ~/.aws); credentials from
the latter alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from pipeline.capture.landing.stores import LandingError, LocalStore, Store
from pipeline.lake.path_checks import is_lake, url_cut_short

CONNECT_TIMEOUT_S = 10
REQUEST_TIMEOUT_S = 30
"""An attempt fails after this long without an answer, or without a byte moving."""

_S3_OPTIONS = ("endpoint", "region")
_BY_PYARROW = ("gs", "gcs", "abfs", "abfss")

_ADVICE = (
    (
        ("NO_SUCH_BUCKET", "does not exist", "ContainerNotFound"),
        "make the bucket, or correct its name or the endpoint",
    ),
    (
        ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "EXPIRED", "credential"),
        "check the credentials (for S3 AWS_PROFILE, AWS_ACCESS_KEY_ID or ~/.aws) and their right to list the bucket "
        "and to get and put objects",
    ),
    (("NETWORK_CONNECTION", "curlCode"), "check that the endpoint is right, running and reachable from this machine"),
)


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
    if url.scheme not in ("s3", "s3a", *_BY_PYARROW):
        raise LandingError(
            f"--landing: {url.scheme}:// is not supported; give a directory, s3://bucket/prefix, gs://bucket/prefix "
            "or abfss://container@account.dfs.core.windows.net/prefix"
        )
    is_s3 = url.scheme in ("s3", "s3a")
    if url.password is not None or (is_s3 and url.username is not None):
        raise LandingError(
            "--landing: credentials do not belong into the URL, where every process list shows them; "
            "put them into the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or ~/.aws/credentials"
        )
    name = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
    try:
        filesystem, root = _s3(url) if is_s3 else fs.FileSystem.from_uri(text)
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
        text = _one_line(error)
        advice = next((advice for signs, advice in _ADVICE if any(sign in text for sign in signs)), None)
        return LandingError(
            f"landing zone {self._name} cannot be written: {text}; {advice or 'check the store and its settings'}"
        )


def _s3(url: SplitResult) -> tuple[Any, str]:
    if not url.hostname:
        raise ValueError("the URL names no bucket (s3://bucket/prefix)")
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    unknown = sorted(options.keys() - set(_S3_OPTIONS))
    if unknown:
        raise ValueError(f"?{unknown[0]}= is not known; an S3 URL takes {' and '.join(_S3_OPTIONS)}")
    endpoint = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    filesystem = fs.S3FileSystem(
        endpoint_override=endpoint or None,
        region=options.get("region") or None,
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        allow_delayed_open=True,
    )
    return filesystem, f"{url.netloc}{unquote(url.path)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
