"""A lake in a real S3-compatible store, by jobs that are processes of their own: of two one begins, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.pipeline.capture.s3 import ACCESS_KEY, HOST, S3, SECRET_KEY
from tests.pipeline.lakes import DATA, rows
from tests.pipeline.streaming.on_s3 import start
from tests.requirements import require_java, require_maven

pytestmark = [pytest.mark.proof, pytest.mark.spark]

ROUNDS = 200


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    require_java()
    require_maven()
    server = S3()
    yield server
    server.stop()


def endpoint(s3: S3) -> str:
    return f"http://{HOST}:{s3.port}"


def test_of_two_processes_one_makes_each_object(s3: S3) -> None:
    folder = f"s3a://{s3.bucket}/race"
    numbers = range(ROUNDS)
    racers = [start(endpoint(s3), "race", folder, *some) for some in (numbers, reversed(numbers))]
    for one in racers:
        assert one.stdout
        assert one.stdout.readline() == "ready\n", one.communicate()[1][-2000:]
    made = []
    for one in racers:
        assert one.stdin
        one.stdin.write("\n")
        one.stdin.flush()
    for one in racers:
        printed, errors = one.communicate(timeout=300)
        assert one.returncode == 0, errors[-2000:]
        made.append(set(json.loads(printed)))
    assert not made[0] & made[1]
    assert made[0] | made[1] == set(numbers)
    assert all(made), "both were at work"


def test_of_two_streams_one_works_and_the_lake_holds_what_a_local_one_holds(s3: S3, landing: Path, whole: Path) -> None:
    lake = f"s3a://{s3.bucket}/lake"
    first = start(endpoint(s3), "stream", landing, lake)
    assert first.stdout
    began = first.stdout.readline()
    assert "batch 0" in began, first.communicate()[1][-3000:]
    second = start(endpoint(s3), "stream", landing, lake)
    _, refused = second.communicate(timeout=600)
    assert second.returncode == 2, refused[-2000:]
    assert f"error: another job works on {lake} (process {first.pid} on " in refused
    _, errors = first.communicate(timeout=1200)
    assert first.returncode == 0, errors[-3000:]
    third = start(endpoint(s3), "stream", landing, lake)
    printed, errors = third.communicate(timeout=1200)
    assert third.returncode == 0, errors[-3000:]
    assert "waiting" not in printed, "the first one has released its lease"
    options = {
        "AWS_ENDPOINT_URL": endpoint(s3), "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "eu-west-1", "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    for table in DATA:
        place = DeltaTable(f"s3://{s3.bucket}/lake/{table.path}", storage_options=options)
        assert place.to_pyarrow_table().num_rows == len(rows(whole, table)), table.full_name
