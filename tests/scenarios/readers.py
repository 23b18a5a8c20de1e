"""Incidents of readers: partitions left out by assign(), a record for ever, partitions not committed, commits lost.

`scanner` assigns three partitions by hand, without commits, and pauses one for good. `sink` does so too, and commits to
a group of which it is no member. `stubborn` assigns one partition and seeks back to the record that fails. `leaver` is
a member that reads its three partitions on and leaves one out of its commits. In the end the broker comes back with an
older state of its disk: the commits of `payroll` that it accepted last are gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.23"}
TOPIC, WAGES = "pages", "wages"
PARTITIONS, LEFT_OUT = 3, 2
WELL_S, ILL_S, COMMIT_S = 40.0, 340.0, 5.0
PROPERTIES = "group.initial.rebalance.delay.ms=500\noffsets.topic.num.partitions=1\n"
FINDINGS = {
    ("partition_dropped_from_commits", f"scanner at 127.0.0.1/{TOPIC}-{LEFT_OUT}"),
    ("partition_dropped_from_commits", f"sinks/{TOPIC}-{LEFT_OUT}"),
    ("partition_dropped_from_commits", f"leavers/{TOPIC}-{LEFT_OUT}"),
    ("stalled", f"stubborn at 127.0.0.1/{TOPIC}-0"),
    ("offset_reset", f"payroll/{WAGES}"),
    # For information: its member leaves with what it has left out.
    ("stopped", f"leavers/{TOPIC}"),
}
_CALM: dict[str, Any] = {
    "auto.offset.reset": "earliest", "log_level": 0, "fetch.wait.max.ms": 4000, "fetch.min.bytes": 100_000,
    "enable.auto.commit": False, "enable.metrics.push": False,
}  # fmt: skip


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """The readers beside each other, then the old disk."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS, WAGES: 1})
    with rd.Sender(truth, bootstrap, "press", TOPIC, partitions=PARTITIONS, interval_s=0.5):
        acts: list[Callable[[Truth, str], None]] = [_scanner, _sink, _stubborn, _leaver]
        threads = [threading.Thread(target=act, args=(truth, bootstrap)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _old_disk(truth, bootstrap, brokers["kafka4"])
    capture_over()


def _reader(truth: Truth, bootstrap: str, client_id: str, group: str) -> Consumer:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    return Consumer({"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": group, **_CALM})


def _read(reader: Consumer, until: float, latest: dict[int, int]) -> None:
    """Take what comes until a time, and note where each partition is."""
    while time.monotonic() < until:
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            latest[message.partition() or 0] = (message.offset() or 0) + 1


def _scanner(truth: Truth, bootstrap: str) -> None:
    """It commits nothing: the group that the library demands is on no request."""
    reader, latest = _reader(truth, bootstrap, "scanner", "unused"), dict[int, int]()
    reader.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    _read(reader, time.monotonic() + WELL_S, latest)
    reader.pause([TopicPartition(TOPIC, LEFT_OUT)])
    truth.add("scanner", "incident", topic=TOPIC, partition=LEFT_OUT)
    _read(reader, time.monotonic() + ILL_S, latest)
    reader.close()


def _sink(truth: Truth, bootstrap: str) -> None:
    """It commits what it reads each few seconds, as Flink's reader does."""
    reader, latest = _reader(truth, bootstrap, "sink", "sinks"), dict[int, int]()
    reader.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    begun = time.monotonic()
    while (now := time.monotonic()) < begun + WELL_S + ILL_S:
        _read(reader, now + COMMIT_S, latest)
        if latest:
            reader.commit(offsets=[TopicPartition(TOPIC, *one) for one in sorted(latest.items())], asynchronous=False)
        if latest.get(LEFT_OUT) is not None and now >= begun + WELL_S:
            reader.pause([TopicPartition(TOPIC, LEFT_OUT)])
            truth.add("sink", "incident", topic=TOPIC, partition=LEFT_OUT)
        latest.clear()
    reader.close()


def _stubborn(truth: Truth, bootstrap: str) -> None:
    """It seeks back to a record that it cannot process."""
    reader, latest = _reader(truth, bootstrap, "stubborn", "unused-too"), dict[int, int]()
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    _read(reader, time.monotonic() + WELL_S, latest)
    at = TopicPartition(TOPIC, 0, latest[0])
    truth.add("stubborn", "incident", topic=TOPIC, partition=0, offset=latest[0])
    until = time.monotonic() + ILL_S / 2
    while time.monotonic() < until:
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            time.sleep(1)
            reader.seek(at)
    reader.close()


def _leaver(truth: Truth, bootstrap: str) -> None:
    """It stores no offsets of one partition any more."""
    reader, latest = _reader(truth, bootstrap, "leaver", "leavers"), dict[int, int]()
    reader.subscribe([TOPIC])
    begun, is_told = time.monotonic(), False
    while (now := time.monotonic()) < begun + WELL_S + ILL_S / 2:
        _read(reader, now + COMMIT_S, latest)
        if now >= begun + WELL_S:
            latest.pop(LEFT_OUT, None)
            if not is_told:
                truth.add("leaver", "incident", topic=TOPIC, partition=LEFT_OUT)
            is_told = True
        if latest:
            reader.commit(offsets=[TopicPartition(TOPIC, *one) for one in sorted(latest.items())], asynchronous=False)
        latest.clear()
    reader.close()


def _old_disk(truth: Truth, bootstrap: str, broker: Kafka4) -> None:
    """Commits that were accepted after a copy of the disk was made are gone when the copy is put back."""
    with rd.Sender(truth, bootstrap, "hr", WAGES, partitions=1, interval_s=0.02, count=60) as sender:
        sender.join()
    _commits(truth, bootstrap, 20)
    with broker.down():
        kept = broker.copied("__consumer_offsets-0")
    _commits(truth, bootstrap, 50)
    with broker.down():
        broker.put_back("__consumer_offsets-0", kept)
    truth.add("clerk", "incident", error="an older state of the disk")
    _commits(truth, bootstrap, 55)


def _commits(truth: Truth, bootstrap: str, end: int) -> None:
    """A process that reads from its commit up to an offset, commits each few records, and ends."""
    reader = _reader(truth, bootstrap, "clerk", "payroll")
    reader.subscribe([WAGES])
    at = -1
    while at < end:
        message = reader.poll(0.5)
        if message is None or message.error() is not None:
            continue
        at = (message.offset() or 0) + 1
        if at % 5 == 0:
            reader.commit(offsets=[TopicPartition(WAGES, 0, at)], asynchronous=False)
            time.sleep(0.3)
    reader.close()
