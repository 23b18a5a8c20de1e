"""Healthy: what operators and their tools do: probes, a reset of offsets, a quota at work, a consumer before its topic.

`replay` is stopped, set back to the beginning by a tool, and started again. `early` waits for a topic that is made half
a minute later. `bulk` runs into its quota now and then, `chatty` sends each record at once. Each minute a probe asks
for a version of the future, each ten seconds a health check connects, each half minute an exporter asks for lags.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.scenarios import librdkafka as rd
from tests.scenarios import rhythm
from tests.scenarios.raw import API_VERSIONS, API_VERSIONS_FLEXIBLE, RawClient
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.troubled_broker import ALTER_CLIENT_QUOTAS
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS, LATE = "shipments-log", 2, "late-topic"
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Each tool has its thread; the groups continue meanwhile."""
    rhythm.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    _limit(truth, bootstrap, "bulk", 600.0)
    truth.client("lag-exporter", rd.LIBRARY, "Python", rd.VERSION)
    truth.client("health-check", "plain socket", "Python", "1")
    tools = [
        _every(clock, 10, lambda: _check_health(bootstrap)),
        _every(clock, 60, lambda: _probe(truth, bootstrap)),
        _every(clock, 30, lambda: _export(bootstrap, ["shipments", "replay", "unhurried"])),
    ]
    where: dict[str, Any] = {"clock": clock, "partitions": PARTITIONS}
    in_turns = rhythm.in_bursts(20, of_s=8, every_s=60, offset_s=20)
    unhurried: dict[str, Any] = {"kafka.group.protocol": "consumer", "work_ms": 12_000, "kafka.max.poll.records": 150}
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "chatty", TOPIC, rate=rhythm.steadily(3), **where, **{"linger.ms": 0})
        )
        stack.enter_context(Writer(truth, bootstrap, "bulk", TOPIC, rate=in_turns, **where))
        stack.enter_context(Member(truth, bootstrap, "shipments-1", "shipments", TOPIC, commit_s=5.0))
        stack.enter_context(rhythm.java_member(truth, bootstrap, "unhurried-1", "unhurried", TOPIC, **unhurried))
        stack.enter_context(Member(truth, bootstrap, "early-1", "early", LATE, commit_s=5.0))
        clock.until(40)
        rhythm.create_topics(truth, bootstrap, {LATE: 1})
        late: dict[str, Any] = {"clock": clock, "partitions": 1, "rate": rhythm.steadily(1)}
        stack.enter_context(Writer(truth, bootstrap, "late-app", LATE, **late))
        with Member(truth, bootstrap, "replay-1", "replay", TOPIC, commit_s=5.0):
            clock.until(200)
        clock.until(210)
        _set_back(truth, bootstrap, "replay")
        clock.until(220)
        with Member(truth, bootstrap, "replay-1", "replay", TOPIC, commit_s=5.0):
            clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, {TOPIC: PARTITIONS}, {"shipments": TOPIC, "replay": TOPIC})
    for tool in tools:
        tool.join()


def _every(clock: Clock, seconds: float, do: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        while clock.now() < SECONDS:
            do()
            time.sleep(seconds)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def _check_health(bootstrap: str) -> None:
    """Connect, and go away without a word, as a load balancer does."""
    host, _, port = bootstrap.rpartition(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def _probe(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "probe") as raw:
        raw.call(API_VERSIONS, 99, API_VERSIONS_FLEXIBLE, flexible=True)


def _export(bootstrap: str, groups: list[str]) -> None:
    for group in groups:
        config = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "lag-exporter", "log_level": 3}
        asking = Consumer(config)
        # The coordinator may be loading: it asks again the next time.
        with suppress(KafkaException):
            for each in asking.committed([TopicPartition(TOPIC, number) for number in range(PARTITIONS)], timeout=20):
                asking.get_watermark_offsets(TopicPartition(TOPIC, each.partition), timeout=20)
        asking.close()


def _limit(truth: Truth, bootstrap: str, client_id: str, bytes_a_second: float) -> None:
    with RawClient(truth, bootstrap, "quota-tool") as raw:
        entity = [{"entityType": "client-id", "entityName": client_id}]
        ops = [{"key": "producer_byte_rate", "value": bytes_a_second, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        answer = raw.ask(ALTER_CLIENT_QUOTAS, 1, body)
        assert answer["entries"][0]["errorCode"] == 0, answer


def _set_back(truth: Truth, bootstrap: str, group: str) -> None:
    """Set a group without members back to the beginning."""
    truth.client("offset-tool", rd.LIBRARY, "Python", rd.VERSION)
    tool = Consumer({"bootstrap.servers": bootstrap, "client.id": "offset-tool", "group.id": group})
    tool.commit(offsets=[TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)], asynchronous=False)
    truth.add("offset-tool", "reset", group=group)
    tool.close()
