"""Servers for the tests of capturing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pipeline.capture.s3 import ACCESS_KEY, S3, SECRET_KEY


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A server, and credentials for it in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = S3()
    yield server
    server.stop()
