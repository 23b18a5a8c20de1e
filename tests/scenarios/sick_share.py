"""Sick, healed and sick again, at the rhythm of share groups (KIP-932) that take a batch each second or each 30 s.

All read `parcels` with Java's KafkaShareConsumer. `shipping` (two members) is in good health. `packing` gives one
record back whenever it gets it, until the broker gives it up. `painting` hangs with what it has acquired, while its
heartbeats continue, and continues in the end.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Background, Clock, Windows, Writer
from tests.scenarios.truth import Truth

_PROPERTIES = """\
group.share.min.record.lock.duration.ms=1000
group.share.record.lock.duration.ms={lock_ms}
"""
PROPERTIES = {
    "sick_share_1s": _PROPERTIES.format(lock_ms=5000),
    "sick_share_30s": _PROPERTIES.format(lock_ms=60_000),
}
LIMIT = 5
"""Deliveries until the broker gives a record up (group.share.delivery.count.limit)."""


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    topic = f"parcels-{suffix}"
    return {("stopped", f"painting-{suffix}/{topic}"), ("poison_record", f"packing-{suffix}/{topic}-0")}


FINDINGS = {"sick_share_1s": findings("1s"), "sick_share_30s": findings("30s")}


class Paced(Background):
    """A member that polls once each `every_s` seconds, and deals with what that gave until the next time.

    While `ill` is set it does not come back from its work.
    """

    def __init__(self, truth: Truth, every_s: float, bootstrap: str, client_id: str, group: str, topic: str,
                 **more: Any) -> None:  # fmt: skip
        options = {"bootstrap": bootstrap, "group": group, "topic": topic, **more}
        self._client = JavaClient(truth, "share", client_id=client_id, **options)
        self._every_s, self.client_id, self.ill = every_s, client_id, threading.Event()
        super().__init__()

    def _run(self) -> None:
        with self._client as client:
            self._stop.wait(4)
            while not self._stop.is_set():
                if not self.ill.is_set():
                    client.tell("resume")
                    self._stop.wait(0.3)  # it commits, sleeps for 0.4 s, and then polls once more
                    client.tell("pause")
                self._stop.wait(self._every_s - 0.3)
            client.tell("resume")


def play_1s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """A batch each second or so: a record is given back again and again, and a member hangs with what it holds."""
    _play(bootstrap, truth, clock, "1s", 1.0, 4.0, Windows(60, 100, 150, 190, end=245))


def play_30s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """A batch each 30 s: a record is given back again and again, and a member hangs with what it holds."""
    _play(bootstrap, truth, clock, "30s", 30.0, 0.4, Windows(200, 400, 560, 740, end=860))


def _play(
    bootstrap: str, truth: Truth, clock: Clock, suffix: str, every_s: float, per_second: float, windows: Windows
) -> None:
    topic = f"parcels-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: 1})
    rate = rhythm.steadily(per_second)
    with ExitStack() as stack:

        def member(group: str, number: int, **more: Any) -> Paced:
            name = f"{group}-{suffix}"
            paced = Paced(truth, every_s, bootstrap, f"{name}-{number}", name, topic, **more)
            return stack.enter_context(paced)

        stack.enter_context(Writer(truth, bootstrap, "parcels-app", topic, clock=clock, partitions=1, rate=rate))
        member("shipping", 1)
        clock.until(2)
        member("shipping", 2)
        painter = member("painting", 1)
        packing = threading.Thread(
            target=_give_back, args=(truth, bootstrap, clock, suffix, every_s, topic, per_second, windows)
        )
        packing.start()
        windows.play([painter], truth, clock)
        packing.join()


def _give_back(
    truth: Truth, bootstrap: str, clock: Clock, suffix: str, every_s: float, topic: str, per_second: float,
    windows: Windows,
) -> None:  # fmt: skip
    """One release of the application after the other, each with a record of its own that it does not get over."""
    group = f"packing-{suffix}"
    client_id = f"{group}-1"
    ends = (*(begin for begin, _ in windows.ill[1:]), windows.end)
    for times, ((begin, _), until) in enumerate(zip(windows.ill, ends, strict=True), 1):
        poison = int(begin * per_second)
        with Paced(truth, every_s, bootstrap, client_id, group, topic, poison=poison):
            truth.wait_for((times - 1) * LIMIT + 1, timeout_s=400, client_id=client_id, kind="released")
            truth.add(client_id, "incident", offset=poison)
            truth.wait_for(times * LIMIT, timeout_s=400, client_id=client_id, kind="released")
            clock.until(clock.now() + every_s)
            truth.add(client_id, "healed", offset=poison)
            clock.until(until - 5 - 2 * every_s if times < len(ends) else until)
