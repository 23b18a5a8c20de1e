"""A lake in S3 that cannot be read is one sentence and exit code 2, to whoever reads it without a JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.paths import ROOT
from tests.pipeline.capture.s3 import S3
from tests.pipeline.streaming.on_s3 import KEYS


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    server = S3()
    yield server
    server.stop()


def failed(command: str, place: str) -> str:
    words = [command, "--lake", place, *(["FROM gold.findings"] if command == "sql" else [])]
    done = subprocess.run(
        [sys.executable, "-m", "wirelake", *words],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **KEYS},
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith(" ")]
    return line


@pytest.mark.parametrize("command", ["findings", "tables", "sql"])
def test_a_bucket_that_is_not_there(s3: S3, command: str) -> None:
    place = s3.url("lake").replace(s3.bucket, "nowhere")
    assert "make the bucket, or correct its name or the endpoint" in failed(command, place)


@pytest.mark.parametrize("command", ["findings", "tables", "sql"])
def test_a_key_that_is_not_known(s3: S3, command: str) -> None:
    with s3.knowing_no_key():
        assert "check the credentials" in failed(command, s3.url("lake"))


@pytest.mark.parametrize("command", ["findings", "sql"])
def test_a_server_that_speaks_plain_http(s3: S3, command: str) -> None:
    assert "begin the endpoint with http://" in failed(command, s3.url("lake").replace("=http:", "=https:"))


def test_a_lake_that_is_not_there(s3: S3) -> None:
    assert "there is no lake" in failed("tables", s3.url("lake"))
