"""Rule ``produce_refused``: records that are not written, and those that are, a little later."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from decoder.kafka.apis import KafkaError
from pipeline.analysis.rules.kafka.producers.produce_refused import ProduceRefused
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import RECORD_BATCHES
from tests.pipeline.analysis.rules.kafka.group_rows import Row, at, event
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import row

Pair = tuple[Row, Row]
TOO_LARGE, TOO_FEW = KafkaError.MESSAGE_TOO_LARGE, KafkaError.NOT_ENOUGH_REPLICAS


def writes(
    seconds: float, code: int = 0, records: int = 10, first_ms: int = 0, last_ms: int = 0, **more: object
) -> Pair:
    kind = "produce_rejected" if code else "produced"
    name = KafkaError(code).name
    said = event(kind, seconds, "p", error_code=int(code), error_name=name, records=records, **more)
    where = {name: said[name] for name in ("cluster", "topic", "partition", "exchange_id")}
    batch = row(
        RECORD_BATCHES, **where, source="produce", ordinal=0, client_id="p", ts=at(seconds), records=records,
        size=100 * records, base_timestamp=first_ms, max_timestamp=max(first_ms, last_ms), base_sequence=-1,
    )  # fmt: skip
    return said, batch


def unseen(seconds: float) -> Pair:
    """An attempt of which the answer was not captured."""
    said, batch = writes(seconds)
    return said | {"error_code": None}, batch


def found(attempts: Sequence[Pair], seen_s: float = 0) -> list[Finding]:
    events, batches = [said for said, _ in attempts], [batch for _, batch in attempts]
    some = sources(events=events, batches=batches)
    ends = {event("produced", 0, "p")["cluster"]: int(at(seen_s).timestamp() * 1_000_000)} if seen_s else {}
    return ProduceRefused.detect(type(some)(some.tables, ends=ends), finding_settings())


def test_what_is_refused_for_good_is_lost() -> None:
    (finding,) = found([writes(0, TOO_LARGE), writes(1, first_ms=500), writes(2, TOO_LARGE, first_ms=900)])
    assert (finding.severity, finding.subject, finding.details["records_lost"]) == ("critical", "t/p", 20)
    assert "max.message.bytes" in finding.advice


def test_a_batch_that_is_tried_again_counts_once() -> None:
    (finding,) = found([writes(n, TOO_FEW) for n in range(9)], seen_s=60)
    assert (finding.severity, finding.details["records_lost"], finding.details["times"]) == ("critical", 10, 9)


def test_while_another_attempt_may_come_records_wait() -> None:
    (finding,) = found([writes(n, TOO_FEW) for n in range(9)], seen_s=9)
    assert (finding.severity, finding.state, finding.details["records_lost"]) == ("warning", "ongoing", 0)
    assert "10 records wait for an attempt" in finding.summary


def test_what_was_written_after_a_while_is_a_warning_that_is_over() -> None:
    (finding,) = found([*(writes(n, TOO_FEW) for n in range(9)), writes(9)], seen_s=60)
    assert (finding.severity, finding.state) == ("warning", "resolved")


@pytest.mark.parametrize(("seen_s", "state"), [(30, "ongoing"), (600, "unknown")])
def test_who_writes_no_more_was_not_accepted(seen_s: float, state: str) -> None:
    (finding,) = found([writes(0, TOO_LARGE), writes(1, TOO_LARGE)], seen_s)
    assert (finding.severity, finding.state) == ("critical", state)
    assert ("it has not tried" in finding.summary) == (state == "unknown")


@pytest.mark.parametrize(
    "attempts",
    [
        [writes(0, TOO_FEW), writes(1)],  # one retry
        [writes(0, TOO_FEW), writes(0.1, TOO_FEW), writes(0.2, TOO_FEW), writes(0.3)],  # retries of a moment
        # Java divides what is too large.
        [writes(0, TOO_LARGE, 10, 0, 90), writes(1, 0, 4, 0, 30), writes(2, 0, 6, 40, 90)],
        [writes(n, KafkaError.NOT_LEADER_OR_FOLLOWER) for n in range(20)],  # a rule of its own
        [writes(n, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER) for n in range(20)],
        [writes(n) for n in range(5)],
        # Whether the second attempt was accepted the capture does not show.
        [writes(0, TOO_FEW), unseen(1)],
    ],
)
def test_what_is_in_order(attempts: list[Pair]) -> None:
    assert found(attempts, seen_s=60) == []


LIVES = [writes(60 * n, TOO_LARGE, 1, 500, client=f"10.0.0.9:{n}") for n in range(3)]
"""What a task reads and sends again each time that it is started again."""


def test_what_is_refused_again_after_each_start_is_one_batch() -> None:
    (finding,) = found(LIVES, seen_s=130)
    assert (finding.severity, finding.details["records_lost"], finding.details["times"]) == ("critical", 1, 3)


def test_what_is_accepted_after_a_start_is_not_lost() -> None:
    (finding,) = found([*LIVES, writes(180, 0, 1, 500, client="10.0.0.9:3")], seen_s=240)
    assert (finding.severity, finding.state, finding.details["records_lost"]) == ("warning", "resolved", 0)


def test_what_was_under_way_beside_the_refused_batch_shows_no_end() -> None:
    (finding,) = found([writes(0, TOO_LARGE, 1, 500), writes(0.001, first_ms=900)], seen_s=300)
    assert (finding.severity, finding.state) == ("critical", "unknown")


def test_records_of_one_moment_on_one_connection_are_several() -> None:
    (finding,) = found([writes(n / 1000, TOO_LARGE, 1, 500) for n in range(3)], seen_s=60)
    assert finding.details["records_lost"] == 3


def test_another_partition_does_not_carry_them() -> None:
    (finding,) = found([writes(0, TOO_LARGE), writes(1, partition=1)], seen_s=60)
    assert finding.details["records_lost"] == 10


TWIN = {"client": "10.0.0.9:9999"}


def beside(*, ends_s: int = 10) -> list[Pair]:
    """Another process of that client id and host, which is accepted each second."""
    return [writes(n + 0.5, first_ms=0, **TWIN) for n in range(ends_s)]


def test_what_another_process_of_the_same_name_writes_is_no_success() -> None:
    refused = [writes(n, TOO_LARGE) for n in range(9)]
    (finding,) = found(in_order([*refused, *beside()]), seen_s=10)
    assert (finding.severity, finding.state) == ("critical", "ongoing")
    assert (finding.details["records_lost"], finding.details["accepted_us"]) == (90, None)


def test_its_own_success_counts_beside_it() -> None:
    refused = [*(writes(n, TOO_FEW) for n in range(9)), writes(9)]
    (finding,) = found(in_order([*refused, *beside(ends_s=20)]), seen_s=60)
    assert (finding.severity, finding.state, finding.details["records_lost"]) == ("warning", "resolved", 0)


def test_a_connection_that_begins_after_the_last_refusal_may_be_of_the_same_process() -> None:
    refused = [writes(n, TOO_FEW) for n in range(9)]
    (finding,) = found([*refused, writes(10, **TWIN)], seen_s=60)
    assert (finding.severity, finding.state, finding.details["records_lost"]) == ("warning", "resolved", 0)


def in_order(pairs: Sequence[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: pair[0]["ts"])
