"""Sick, healed and sick again, at a rhythm of 30 s: the recorder itself, which loses packets of healthy traffic.

A producer and a group of two that commits each 30 s, both in good health; while the recorder is ill, one packet in
twenty of those with data is left out of what it writes.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import EACH_30_SECONDS, Clock, Member, Writer
from tests.scenarios.truth import Truth

VISITS, PARTITIONS, GROUP = "visits", 2, "counters"
LOSE_EVERY = 20
"""Of the packets with data, one in this many is lost while the recorder is ill."""
FINDINGS = {"sick_capture_30s": {("capture_loss", "local/{0}:{port}")}}


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each 30 s: all in good health, but the recorder loses packets."""
    truth.client("recorder", "tcpdump", "C", "4")
    rhythm.create_topics(truth, bootstrap, {VISITS: PARTITIONS})
    calm: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000, "log_level": 0}
    with ExitStack() as stack:
        rate = rhythm.steadily(2)
        more: dict[str, Any] = {"clock": clock, "partitions": PARTITIONS, "rate": rate, "linger.ms": 1000}
        stack.enter_context(Writer(truth, bootstrap, "visits-web", VISITS, **more))
        for number in (1, 2):
            member = Member(truth, bootstrap, f"counters-{number}", GROUP, VISITS, commit_s=30.0, **calm)
            stack.enter_context(member)
        for begin, end in EACH_30_SECONDS.ill:
            for second, kind in ((begin, "incident"), (end, "healed")):
                clock.until(second)
                truth.add("recorder", kind)
        clock.until(EACH_30_SECONDS.end)
        rhythm.note_outcome(truth, bootstrap, {VISITS: PARTITIONS}, {GROUP: VISITS})
