"""Of two drivers that make the same commit in a real S3-compatible store one does, and the other is told."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.pipeline.capture.s3 import HOST, S3
from tests.pipeline.streaming.spark.committer import start
from tests.requirements import require_java, require_maven

pytestmark = pytest.mark.proof

ROUNDS = 200


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    require_java()
    require_maven()
    server = S3()
    yield server
    server.stop()


def test_of_two_drivers_one_makes_each_commit(s3: S3) -> None:
    folder, numbers = f"s3a://{s3.bucket}/table", range(ROUNDS)
    drivers = [
        start(f"http://{HOST}:{s3.port}", folder, "ours", *some) for some in (numbers, reversed(numbers), numbers)
    ]
    for one in drivers:
        assert one.stdout
        assert one.stdout.readline() == "ready\n", one.communicate()[1][-2000:]
    for one in drivers:
        assert one.stdin
        one.stdin.write("\n")
        one.stdin.flush()
    found = []
    for one in drivers:
        printed, errors = one.communicate(timeout=1200)
        assert one.returncode == 0, errors[-2000:]
        found.append(json.loads(printed))
    made = [number for one in found for number in one["made"]]
    assert sorted(made) == list(numbers), "each commit was made, and none twice"
    assert {name for one in found for name in one["refused"]} == {"java.nio.file.FileAlreadyExistsException"}
    owners = {f"{driver.pid} {number}" for driver, one in zip(drivers, found, strict=True) for number in one["made"]}
    held = s3.objects("table/_delta_log")
    assert {content.decode().strip() for content in held.values()} == owners, "no commit was replaced"
    assert len(held) == ROUNDS
