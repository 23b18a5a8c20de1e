"""What waits is what came after the newest file that was read; a job that lets it wait too long is not ready."""

from __future__ import annotations

from pipeline.metrics.backlog import Backlog, Listed, backlog_of
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.stream import StreamMetrics

FILES = [Listed(100, 5_000), Listed(200, 7_000), Listed(400, 9_000)]


def test_files_that_came_after_the_newest_read_one_wait() -> None:
    assert backlog_of(FILES, 5_000_000) == Backlog(2, 600, 7.0)
    assert backlog_of(FILES, 5_000_999) == Backlog(2, 600, 7.0)
    assert backlog_of(FILES, 9_000_000) == Backlog(0, 0, None)
    assert backlog_of(FILES, None) == Backlog(3, 700, 5.0)
    assert backlog_of([], None) == Backlog(0, 0, None)


def test_what_waits_is_shown_and_too_long_a_wait_is_reported() -> None:
    exposed = Exposed()
    metrics = StreamMetrics(exposed)
    assert metrics.why_behind(3600, 10_000) is None
    metrics.backlog("frames", Backlog(2, 2_000_000, 5_000.0))
    metrics.backlog("gaps", Backlog(1, 100, 9_999.0))
    found = {(one.name.removeprefix("wirelake_stream_backlog_"), *one.labels.values()): one.value
             for one in exposed.samples}  # fmt: skip
    assert found == {
        ("files", "frames"): 2, ("bytes", "frames"): 2_000_000, ("oldest_timestamp_seconds", "frames"): 5_000.0,
        ("files", "gaps"): 1, ("bytes", "gaps"): 100, ("oldest_timestamp_seconds", "gaps"): 9_999.0,
    }  # fmt: skip
    assert metrics.why_behind(5_000, 10_000) is None
    assert metrics.why_behind(3_600, 10_000) == (
        "it is behind: 3 landing files of 1.9 MiB wait, the first for 1 h 23 min"
    )
    metrics.backlog("frames", Backlog(0, 0, None))
    assert metrics.why_behind(3_600, 10_000) is None
    assert ("oldest_timestamp_seconds", "frames") not in {
        (one.name.removeprefix("wirelake_stream_backlog_"), *one.labels.values()) for one in exposed.samples
    }
