"""A member of a group that cannot get over one record: a process of its own, which ends there as often as it comes.

`python -m tests.scenarios.crashing_member <json>`: bootstrap, client_id, group, topic, commit_s, poison (the number of
the record in partition 0 that ends it), leaves (whether it commits the rest and closes its consumer first).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

_ENDED_BY_IT = 3


class Supervised:
    """Keeps such a process running, as a service manager does, `restart_s` after it ended."""

    def __init__(self, truth: Truth, restart_s: float, **options: Any) -> None:
        self._truth, self._restart_s, self._options = truth, restart_s, options
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        truth.client(options["client_id"], rd.LIBRARY, "Python", rd.VERSION)

    def __enter__(self) -> Supervised:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        command = [sys.executable, "-m", "tests.scenarios.crashing_member", json.dumps(self._options)]
        while not self._stop.is_set():
            process = subprocess.Popen(command)
            while process.poll() is None:
                if self._stop.wait(0.1):
                    process.terminate()
                    process.wait()
                    return
            assert process.returncode == _ENDED_BY_IT, process.returncode
            self._truth.add(self._options["client_id"], "error", group=self._options["group"], error="crashed")
            self._stop.wait(self._restart_s)


def main(options: dict[str, Any]) -> int:
    """Read, commit every `commit_s` seconds, and end at the record."""
    topic, done = options["topic"], dict[int, int]()
    config: dict[str, Any] = {
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 2000,
        "log_level": 0,
    }
    config |= {"fetch.message.max.bytes": 4000, "queued.min.messages": 50}
    who = {"bootstrap.servers": options["bootstrap"], "client.id": options["client_id"], "group.id": options["group"]}
    consumer = Consumer(config | who | {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1500})

    def commit(*_: Any) -> None:
        offsets = [TopicPartition(topic, partition, offset) for partition, offset in done.items()]
        done.clear()
        if offsets:
            with contextlib.suppress(KafkaException):  # a rebalance is under way
                consumer.commit(offsets=offsets, asynchronous=False)

    consumer.subscribe([topic], on_revoke=commit)
    last = time.monotonic()
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            partition, offset = message.partition() or 0, message.offset() or 0
            if partition == 0 and offset == options["poison"]:
                if options["leaves"]:
                    commit()
                    consumer.close()
                os._exit(_ENDED_BY_IT)
            done[partition] = offset + 1
        if time.monotonic() - last >= options["commit_s"]:
            commit()
            last = time.monotonic()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
