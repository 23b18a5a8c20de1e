"""Sick, healed and sick again, at a rhythm of one second or thirty: writers of what no broker should get.

`metrics` asks for no answer. `raw-damaged` sends batches whose checksum is wrong, `raw-gap` such that do not follow the
last one, as a process does that has lost some. `ancient` (kafka-python as old as 0.9) writes by a version that Kafka 4
has dropped, until it is updated. All of them write properly before and after.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.decoder.kafka.batches import batch, damaged, record
from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios import rhythm
from tests.scenarios.raw import PRODUCE, RawClient
from tests.scenarios.rhythm import Clock, Windows
from tests.scenarios.truth import Truth
from tests.scenarios.turns import Turns

INIT_PRODUCER_ID = 22
CORRUPT_MESSAGE, OUT_OF_ORDER_SEQUENCE_NUMBER = 2, 45


def topics(rhythm_name: str) -> tuple[str, str, str, str]:
    """Topics of loads, of readings, of payouts, and of the ledger; a broker may serve two recordings."""
    return f"loads-{rhythm_name}", f"meter-{rhythm_name}", f"refunds-{rhythm_name}", f"ledger-{rhythm_name}"


def findings(rhythm_name: str) -> set[tuple[str, str]]:
    """What must be found."""
    _, readings, payouts, _ = topics(rhythm_name)
    return {
        ("acks0_producer", "metrics"),
        ("crc_mismatch", f"{readings}-0/raw-damaged"),
        ("sequence_gap", f"{payouts}-0/raw-gap"),
        ("unsupported_version", "ancient/Produce v1"),
        ("kip896_incompatible_client", "ancient"),
    }


FINDINGS = {
    # Each refusal costs a connection.
    "sick_batches_1s": findings("1s") | {("connection_churn", "ancient/127.0.0.1")},
    "sick_batches_30s": findings("30s"),
}


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Writes each second: without asking for an answer, damaged, out of sequence, and by a version of the past."""
    _play(bootstrap, truth, clock, "1s", rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Writes each 30 s: without asking for an answer, damaged, out of sequence, and by a version of the past."""
    _play(bootstrap, truth, clock, "30s", rhythm.EACH_30_SECONDS)


def _play(bootstrap: str, truth: Truth, clock: Clock, rhythm_name: str, windows: Windows) -> None:
    every_s = float(rhythm_name[:-1])
    loads, readings, payouts, ledger = topics(rhythm_name)
    rhythm.create_topics(truth, bootstrap, dict.fromkeys((loads, readings, payouts, ledger), 1))
    with ExitStack() as stack:
        disturbed, lossy = (
            stack.enter_context(RawClient(truth, bootstrap, name)) for name in ("raw-damaged", "raw-gap")
        )
        acts: dict[str, Callable[[bool], None]] = {
            "metrics": _Metrics(truth, bootstrap, loads).turn,
            "raw-damaged": lambda is_ill: _send_damaged(disturbed, readings, is_ill),
            "raw-gap": _Sequence(lossy, payouts).turn,
            "ancient": _Ancient(truth, bootstrap, ledger).turn,
        }
        turns = [
            Turns(name, clock, every_s, act, offset_s=2.0 + number * every_s / 5)
            for number, (name, act) in enumerate(acts.items())
        ]
        for one in turns:
            stack.enter_context(one)
        windows.play(turns, truth, clock)


class _Metrics:
    """Writes with acks=0 while it is ill; each change is a process that is started again."""

    def __init__(self, truth: Truth, bootstrap: str, topic: str) -> None:
        truth.client("metrics", rd.LIBRARY, "Python", rd.VERSION)
        self._topic = topic
        self._base: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": "metrics", "log_level": 0}
        self._acks = ""

    def turn(self, is_ill: bool) -> None:
        acks = "0" if is_ill else "all"
        if acks != self._acks:
            self._producer, self._acks = Producer({**self._base, "acks": acks}), acks
        self._producer.produce(self._topic, b"load 0.7", partition=0)
        self._producer.flush(10)


def _produce(raw: RawClient, topic: str, records: bytes) -> int:
    parts = [{"index": 0, "records": records}]
    body = {"transactionalId": None, "acks": -1, "timeoutMs": 5000}
    answer = raw.ask(PRODUCE, 7, {**body, "topicData": [{"name": topic, "partitionData": parts}]})
    return int(answer["responses"][0]["partitionResponses"][0]["errorCode"])


def _now(producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    now = time.time_ns() // 1_000_000
    return batch([record(b"k", b"v")], producer=producer, base_timestamp=now, max_timestamp=now)


def _send_damaged(raw: RawClient, topic: str, is_ill: bool) -> None:
    code = _produce(raw, topic, damaged(_now()) if is_ill else _now())
    assert code == (CORRUPT_MESSAGE if is_ill else 0), code


class _Sequence:
    """An idempotent writer that has lost some of its batches while it is ill, and then starts over."""

    def __init__(self, raw: RawClient, topic: str) -> None:
        self._raw, self._topic = raw, topic
        self._begin()

    def _begin(self) -> None:
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000}
        while (given := self._raw.ask(INIT_PRODUCER_ID, 1, body))["producerId"] < 0:
            time.sleep(0.2)  # the broker has no ids yet
        self._who = (given["producerId"], given["producerEpoch"])
        self._next, self._was_ill = 0, False

    def turn(self, is_ill: bool) -> None:
        if is_ill and self._next:
            code = self._write(self._next + 5)
            assert code == OUT_OF_ORDER_SEQUENCE_NUMBER, code
            self._was_ill = True
            return
        if self._was_ill:
            self._begin()
        code = self._write(self._next)
        assert code == 0, code
        self._next += 1

    def _write(self, sequence: int) -> int:
        return _produce(self._raw, self._topic, _now((*self._who, sequence)))


class _Ancient:
    """A library of 2015 while it is ill, and that of today otherwise."""

    def __init__(self, truth: Truth, bootstrap: str, topic: str) -> None:
        truth.client("ancient", kp.LIBRARY, "Python", kp.VERSION)
        self._truth, self._bootstrap, self._topic = truth, bootstrap, topic
        self._producer: KafkaProducer | None = None
        self._is_old = False

    def turn(self, is_ill: bool) -> None:
        if self._producer is None or is_ill != self._is_old:
            if self._producer is not None:
                self._producer.close(1)
            old: dict[str, Any] = {"api_version": (0, 9), "retries": 0} if is_ill else {}
            self._producer = KafkaProducer(
                bootstrap_servers=self._bootstrap, client_id="ancient", acks=1, max_block_ms=3000, **old
            )
            self._is_old = is_ill
        try:
            self._producer.send(self._topic, b"entry", partition=0).get(10)
        except KafkaError as refused:
            if not is_ill:
                raise
            self._truth.add("ancient", "error", topic=self._topic, partition=0, error=type(refused).__name__)
        else:
            assert not is_ill, "a broker took Produce v1"
