"""Healthy: aiokafka: a group that commits by itself each 5 s, one that commits each 30 s; bursts, a second member.

Needs `pip install aiokafka`, which nothing else does.
"""

from __future__ import annotations

import asyncio
import importlib
from importlib.metadata import version
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "telemetry", 3
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
GROUPS = {"aio-auto": None, "aio-30s": 30.0}


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """The second member of `aio-auto` comes after three minutes and goes after seven."""
    rhythm.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    asyncio.run(_play(bootstrap, truth, clock))
    rhythm.note_outcome(truth, bootstrap, {TOPIC: PARTITIONS}, dict.fromkeys(GROUPS, TOPIC))


def _aiokafka() -> Any:
    return importlib.import_module("aiokafka")


async def _play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    until = {"aio-auto-1": (0.0, SECONDS), "aio-30s-1": (0.0, SECONDS), "aio-auto-2": (180.0, 420.0)}
    members = [_read(bootstrap, truth, clock, name, *times) for name, times in until.items()]
    await asyncio.gather(_write(bootstrap, truth, clock), *members)


async def _write(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Three records a second, and twenty in a burst of ten seconds each two minutes."""
    truth.client("aio-telemetry", "aiokafka", "Python", version("aiokafka"))
    producer = _aiokafka().AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="aio-telemetry", linger_ms=20)
    await producer.start()
    number = 0
    while clock.now() < SECONDS:
        await producer.send(TOPIC, f"value {number}".encode(), partition=number % PARTITIONS)
        number += 1
        await asyncio.sleep(0.05 if clock.now() % 120 < 10 else 0.33)
    await producer.stop()


async def _read(bootstrap: str, truth: Truth, clock: Clock, name: str, begin: float, end: float) -> None:
    truth.client(name, "aiokafka", "Python", version("aiokafka"))
    group = name.rpartition("-")[0]
    commit_s = GROUPS[group]
    config: dict[str, Any] = {"bootstrap_servers": bootstrap, "client_id": name, "group_id": group}
    while clock.now() < begin:
        await asyncio.sleep(0.1)
    consumer = _aiokafka().AIOKafkaConsumer(
        TOPIC, auto_offset_reset="earliest", enable_auto_commit=commit_s is None, **config
    )
    await consumer.start()
    at = clock.now()
    while clock.now() < end:
        await consumer.getmany(timeout_ms=500)
        if commit_s is not None and clock.now() - at >= commit_s:
            at = clock.now()
            await consumer.commit()
    await consumer.stop()
    truth.add(name, "closed")
