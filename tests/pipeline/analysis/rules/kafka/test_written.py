"""Rules about what is in the batches, on rows made by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.rules.kafka.producers.crc_mismatch import CrcMismatch
from pipeline.analysis.rules.kafka.producers.old_message_format import OldMessageFormat
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import OversizedOrTinyBatches
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, RECORD_BATCHES
from tests.pipeline.analysis.sources import detected, sources
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
RULES = (CrcMismatch, OldMessageFormat, OversizedOrTinyBatches)


def batch(n: float, **more: Any) -> dict[str, Any]:
    """A batch of format v0 that is written at second `n`, and which the broker took."""
    at = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n}", "cluster": "k", "topic": "t", "partition": 0}
    return row(RECORD_BATCHES, **at | {"client_id": "c", "source": "produce", "magic": 0, "base_offset": 7} | more)


def produce(n: float, status: str) -> dict[str, Any]:
    at = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n}"}
    return row(EXCHANGES_WITH_BODIES, protocol="kafka", api_key=0, status=status, server_ip="b", server_port=9092, **at)


@pytest.mark.parametrize(
    ("status", "source", "found"),
    [("paired", "produce", 3), ("unanswered", "produce", 0), ("unanswered", "fetch", 3), ("pending", "produce", 3)],
)
def test_a_topic_does_not_carry_what_its_broker_left_unanswered(status: str, source: str, found: int) -> None:
    offset = 7 if status == "paired" else None
    made = sources(
        batches=[batch(30 * n, source=source, base_offset=offset) for n in range(3)],
        exchanges=[*(produce(30 * n, status) for n in range(3)), produce(99, "paired")],
    )
    assert [one.details["batches"] for one in detected(RULES, made, SETTINGS)] == [found] * bool(found)


def test_of_a_capture_of_requests_alone_nothing_follows_from_what_is_unanswered() -> None:
    exchanges = [produce(30 * n, "unanswered") for n in range(3)]
    made = sources(batches=[batch(30 * n, base_offset=None) for n in range(3)], exchanges=exchanges)
    assert [one.details["batches"] for one in detected(RULES, made, SETTINGS)] == [3]


def test_batches_that_were_taken_are_counted_beside_those_that_were_not() -> None:
    batches = [batch(n, base_offset=None if n % 2 else n) for n in range(6)]
    made = sources(batches=batches, exchanges=[produce(n, "unanswered" if n % 2 else "paired") for n in range(6)])
    (old,) = detected(RULES, made, SETTINGS)
    assert (old.rule, old.subject, old.severity, old.details["batches"]) == ("old_message_format", "t", "info", 3)
    assert old.summary.startswith("Topic t carries messages of format v0, written by c: 3 batches, from 12:00:00")


def test_a_trouble_begins_and_ends_with_its_own_batches() -> None:
    good = [batch(n, magic=2, crc_valid=True) for n in range(10)]
    (bad,) = detected(RULES, sources(batches=[*good, batch(4.5, magic=2, crc_valid=False)]), SETTINGS)
    assert (bad.rule, bad.details["batches"]) == ("crc_mismatch", 1)
    assert [bad.first_us, bad.last_us, bad.details["enough_us"]] == [int((T0.timestamp() + 4.5) * 1_000_000)] * 3


def fetched(n: float, version: int | None) -> dict[str, Any]:
    at = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n}", "api_version": version}
    return row(
        EXCHANGES_WITH_BODIES, protocol="kafka", api_key=1, status="paired", server_ip="b", server_port=9092, **at
    )


READ = {"source": "fetch", "client_id": "r"}
FORMATS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str, str]] = {
    "written": ([batch(1), batch(2, **READ)], [produce(1, "paired"), fetched(2, 3)], "converts", "write them"),
    "read by an old client": (
        [batch(1, **READ)],
        [fetched(1, 3)],
        "No client was seen to write them",
        "clients that read",
    ),
    "read by a new client": ([batch(1, **READ)], [fetched(1, 4)], "The log holds them", "retention removes"),
    "read by whom nobody knows": ([batch(1, **READ)], [], "No client was seen to write them", "clients that read"),
}
"""Batches, their exchanges, and what they say."""


@pytest.mark.parametrize("name", FORMATS)
def test_old_formats_are_told_by_who_was_seen_with_them(name: str) -> None:
    batches, exchanges, meaning, advice = FORMATS[name]
    (old,) = detected(RULES, sources(batches=batches, exchanges=exchanges), SETTINGS)
    assert meaning in old.summary
    assert advice in old.advice
    assert ("written by" in old.summary) is (name == "written") is bool(old.details["writers"])
    assert old.details["stored_for"] == (["r"] if name == "read by a new client" else [])
