"""Exchanges one after the other, and what many of them hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.decoder.kafka.batches import batch, record
from tests.hostile.traffic import START_US, Landing

S = 1_000_000
DAY = 86_400 * S


class Talk(Landing):
    """Exchanges one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self.us = 0, START_US

    def say(
        self, api: int, version: int, asked: dict[str, Any], answer: dict[str, Any] | None = None, *,
        after_us: int = 1000, **more: Any,
    ) -> None:  # fmt: skip
        self.number += 1
        self.us += after_us
        self.exchange(self.number, int(api), version, asked, answer, self.us, **more)


def records(base: int = 0, *, producer: int = 1, attributes: int = 0) -> bytes:
    return batch([record(b"", b"")], base_offset=base, producer=(producer, 0, 0), attributes=attributes)


def fetched(topic: str, parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"responses": [{"topic": topic, "partitions": list(parts)}]}


def asked_for(topic: str, parts: Iterable[int], **more: Any) -> dict[str, Any]:
    return {"isolationLevel": 1, "topics": [{"topic": topic, "partitions": [{"partition": p} for p in parts]}], **more}
