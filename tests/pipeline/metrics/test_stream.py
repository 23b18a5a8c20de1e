"""Samples of the job add up over its batches."""

from __future__ import annotations

from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.stream import BatchDone, StreamMetrics


def test_batches_add_up_by_query() -> None:
    exposed = Exposed()
    metrics = StreamMetrics(exposed)
    metrics.batch(BatchDone("frames", 10, 9, 1.5, 100.0, 5_000_000, 0))
    metrics.batch(BatchDone("frames", 0, 0, 0.5, 101.0, None, 0))
    metrics.batch(BatchDone("gold", 3, 2, 2.0, 102.0, None, 1))
    metrics.set_aside("frames", 2)
    found = {(one.name.removeprefix("wirelake_stream_"), *one.labels.values()): one.value for one in exposed.samples}
    assert found["batches", "frames"] == 2
    assert found["rows_read", "frames"] == 10
    assert found["rows_written", "frames"] == 9
    assert found["batch_seconds", "frames"] == 2.0
    assert found["last_batch_seconds", "frames"] == 0.5
    assert found["last_batch_timestamp_seconds", "frames"] == 101.0
    assert found["newest_timestamp_seconds", "frames"] == 5.0
    assert ("newest_timestamp_seconds", "gold") not in found
    assert found["failed_steps", "gold"] == 1
    assert found["files_set_aside", "frames"] == 2


def test_ongoing_incidents_replace_those_before() -> None:
    exposed = Exposed()
    metrics = StreamMetrics(exposed)
    metrics.incidents({("stuck_commit", "critical"): 2, ("lso_stalled", "critical"): 1})
    metrics.incidents(None)
    assert {one.labels["rule"]: one.value for one in exposed.samples} == {"stuck_commit": 2, "lso_stalled": 1}
    metrics.incidents({("lso_stalled", "critical"): 1})
    assert {one.labels["rule"]: one.value for one in exposed.samples} == {"lso_stalled": 1}
