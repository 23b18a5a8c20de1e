"""Sick, healed and sick again: one of two brokers goes away for minutes with all that only it holds.

Both partitions of `parcels` and the only one of `__consumer_offsets` have their one replica there. `parcel-api` cannot
write, `tracking` cannot read; `billing` (librdkafka) and `ledger` (Java), which read `invoices` on the broker that
stays, cannot commit. When it is back all of them continue by themselves. Members commit each 30 s.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import rhythm
from tests.scenarios.broker_gone import KEPT, LOST, create_topics
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

WINDOWS = Windows(150, 270, 420, 540, end=660)
FINDINGS = {
    "sick_cluster_30s": {
        ("partition_unavailable", f"{LOST}-0"),
        ("coordinator_unavailable", "{1}:9092"),
        # What follows from it: who comes back waits for the member that it was before.
        ("stopped", f"tracking/{LOST}"),
        *(("stopped", f"{group}/{KEPT}") for group in ("billing", "ledger")),
        *(("slow_rebalance", group) for group in ("billing", "tracking")),
    }
}
_HALTS = {("stopped", where) for where in (f"tracking/{LOST}", f"billing/{KEPT}", f"ledger/{KEPT}")}
UNKNOWN = {"sick_cluster_30s": {"joined midway": _HALTS}}
"""Two commits tell no rhythm by which the first halt could be known, and then the halt is all that is known."""
POSSIBLE = {"sick_cluster_30s": {("coordinator_unavailable", "{0}:9092")}}
"""Whoever says first that there is no coordinator stands for it."""
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000, "log_level": 0}


def play_30s(bootstrap: str, truth: Truth, clock: Clock, other: Kafka4) -> None:
    """Commits each 30 s: one of two brokers goes away for two minutes, twice, with all that only it holds."""
    create_topics(truth, bootstrap)
    patient: dict[str, Any] = {"message.timeout.ms": 300_000, "log_level": 0, "linger.ms": 500}
    java = {"kafka.fetch.min.bytes": 100_000, "kafka.fetch.max.wait.ms": 2000}
    with ExitStack() as stack:
        for name, topic, partitions in (("parcel-api", LOST, 2), ("invoice-api", KEPT, 1)):
            rate = rhythm.steadily(2)
            stack.enter_context(
                Writer(truth, bootstrap, name, topic, clock=clock, partitions=partitions, rate=rate, **patient)
            )
        stack.enter_context(Member(truth, bootstrap, "tracking-1", "tracking", LOST, commit_s=30.0, **_CALM))
        stack.enter_context(Member(truth, bootstrap, "billing-1", "billing", KEPT, commit_s=30.0, **_CALM))
        stack.enter_context(rhythm.java_member(truth, bootstrap, "ledger-1", "ledger", KEPT, auto_s=30.0, **java))
        for begin, end in WINDOWS.ill:
            clock.until(begin)
            truth.add("setup", "incident", error="broker 2 goes away")
            with other.down():
                clock.until(end)
            truth.add("setup", "healed", error="broker 2 is back")
        clock.until(WINDOWS.end)
