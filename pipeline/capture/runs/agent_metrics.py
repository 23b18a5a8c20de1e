"""What a capture agent reports about itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from pipeline.capture.stats import CaptureStats
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.log import Log
from pipeline.metrics.sample import Sample

EVERY_S = 1.0
"""Samples are taken again at most so often, s: the agent reports far more often how far it is."""


def agent_samples(stats: CaptureStats) -> Iterator[Sample]:
    """Samples of what an agent has seen, kept and lost since it began."""
    yield _count("packets", "Packets read.", stats.packets)
    yield from _by("packets_skipped", "Packets that hold no TCP segment that can be read.", "reason", stats.skipped)
    yield from _by("frames", "Kafka and MongoDB messages that landed.", "protocol", stats.frames)
    yield _count("truncated_frames", "Messages whose end the capture lacks.", stats.truncated)
    yield from _by("connections", "Connections whose protocol was recognised.", "protocol", stats.connections)
    yield from _by(
        "connections_not_recognised", "Connections whose protocol was not recognised.", "reason", stats.not_recognised
    )
    yield _count("gaps", "Places where bytes are missing from a recognised connection.", stats.gaps)
    yield _count("lost_bytes", "Bytes that are missing there.", stats.bytes_lost)
    if stats.kernel_dropped is not None:
        yield _count("kernel_dropped_packets", "Packets that the kernel had no room for.", stats.kernel_dropped)
    yield _count(
        "ring_files_missed", "Files of a ring that disappeared before they were read.", stats.ring_files_missed
    )
    yield from _by("notices", "Limits reached and other unusual events.", "notice", stats.notices)
    yield _count("landing_files", "Files published in the landing zone.", len(stats.files))


def reporting(exposed: Exposed, log: Log, show: Callable[[CaptureStats], None]) -> Callable[[CaptureStats], None]:
    """A callback for an agent's progress that exposes and logs its samples, then calls ``show``."""
    taken = -EVERY_S

    def report(stats: CaptureStats) -> None:
        nonlocal taken
        now = time.monotonic()
        exposed.beat()
        if now - taken >= EVERY_S:
            taken = now
            exposed.show(agent_samples(stats))
            log.beat(exposed.samples)
        show(stats)

    return report


def _count(name: str, text: str, value: float) -> Sample:
    return Sample(f"wirelake_agent_{name}", "counter", text, value)


def _by(name: str, text: str, label: str, counts: Mapping[str, int]) -> Iterator[Sample]:
    for key, value in sorted(counts.items()):
        yield Sample(f"wirelake_agent_{name}", "counter", text, value, {label: key})
