"""Transactions of one transactional id: what begins, ends and settles them in both protocols, and after loss."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.extractors.transactions import Transaction, TxnEvent, follow

PATIENCE = 1_000_000


def event(ts: int, kind: str, epoch: int = 0, **more: Any) -> TxnEvent:
    return TxnEvent(ts, f"e{ts}", kind, 7, epoch, **{"connection_id": "c"} | more)


def add(ts: int, partition: str = "t-0", epoch: int = 0, **more: Any) -> TxnEvent:
    return event(ts, "add_partition", epoch, partition=partition, **more)


def end(ts: int, epoch: int = 0, *, committed: bool = True, **more: Any) -> TxnEvent:
    return event(ts, "end", epoch, committed=committed, **more)


def marker(ts: int, partition: str = "t-0", epoch: int = 0, *, committed: bool = True, **more: Any) -> TxnEvent:
    return event(ts, "marker", epoch, partition=partition, committed=committed, **more)


def states(*events: TxnEvent) -> list[str]:
    return [t.state for t in follow(events, PATIENCE)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([add(1)], ["ongoing"]),
        ([add(1), end(2)], ["committing"]),
        ([add(1), end(2, committed=False)], ["aborting"]),
        ([add(1), end(2), marker(3)], ["committed"]),
        ([add(1), add(1, "t-1"), end(2), marker(3)], ["committing"]),
        ([add(1), add(1, "t-1"), end(2), marker(3), marker(4, "t-1")], ["committed"]),
        ([add(1), end(2, committed=False), marker(3, committed=False)], ["aborted"]),
        ([add(1), marker(9, epoch=1, committed=False)], ["aborted"]),  # timed out: the coordinator ends it
        ([add(1), end(2), add(3)], ["committed", "ongoing"]),  # KIP-98: the same epoch
        ([add(1), end(2), add(3, epoch=1)], ["committed", "ongoing"]),  # KIP-890: the next epoch
        ([add(1), event(5, "init", 1)], ["aborted"]),  # a new instance: what was open is aborted
        ([add(1), end(2), event(5, "init", 1)], ["committed"]),
        ([event(1, "add_group", group_id="g"), end(2), marker(3, "__consumer_offsets-9")], ["committed"]),
        ([add(1), end(2, error_code=47), end(3)], ["committing"]),
        ([add(1), end(2, error_code=47)], ["ongoing"]),
        ([add(1, error_code=51)], []),
    ],
)
def test_states(events: list[TxnEvent], expected: list[str]) -> None:
    assert states(*events) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([add(1), end(2, error_code=None)], [("unknown", False)]),
        ([add(1), end(2, error_code=None), marker(3)], [("committed", False)]),
        ([add(1), add(5, epoch=1)], [("unknown", False), ("ongoing", True)]),  # its end was not seen
        ([add(1), event(2, "loss")], [("unknown", False)]),
        ([add(1), event(2, "loss", connection_id="other")], [("ongoing", True)]),
        ([add(1), event(2, "loss"), end(3)], [("committing", False)]),
        ([end(3)], [("committing", False)]),
        ([end(3), marker(4, "t-5")], [("committed", False)]),
        ([add(1), add(2 + PATIENCE)], [("unknown", False), ("ongoing", True)]),
    ],
)
def test_after_loss(events: list[TxnEvent], expected: list[tuple[str, bool]]) -> None:
    assert [(t.state, not t.lost) for t in follow(events, PATIENCE)] == expected


def test_a_transaction_shows_what_it_holds() -> None:
    (only,) = follow(
        [
            add(1, client_id="AddPartitionsManager"),
            event(2, "produced", partition="t-0", offset=14, records=5, client_id="app"),
            event(3, "add_group", group_id="g", client_id="app"),
            end(9, client_id="app"),
        ],
        PATIENCE,
    )
    assert (only.client_id, only.offsets, only.groups, only.records) == ("app", {"t-0": 14}, {"g"}, 5)
    assert (only.first_us, only.end_us, only.last_us, only.end_exchange_id) == (1, 9, 9, "e9")


def _produced(ts: int, last: int) -> TxnEvent:
    return event(ts, "produced", partition="t-0", offset=last, records=1)


def _control(ts: int, offset: int) -> TxnEvent:
    return event(ts, "control", partition="t-0", committed=True, offset=offset)


def test_a_fetched_marker_belongs_to_the_records_before_it() -> None:
    def run(*events: TxnEvent) -> list[Transaction]:
        return follow(events, PATIENCE)

    first, second = run(_produced(1, 10), end(2), _produced(3, 12), _control(4, 11), _control(4, 13))
    assert (first.state, first.marked, second.state, second.marked) == ("committed", set(), "committed", {"t-0"})
    (history,) = run(_produced(1, 10), _control(2, 3))  # a consumer reads what lies long behind
    assert history.state == "ongoing"
    (unknown,) = run(add(1), _control(2, 3))
    assert unknown.state == "ongoing"


def test_markers_that_are_read_again_change_nothing() -> None:
    def ended(*events: TxnEvent) -> list[tuple[str, set[str], int]]:
        return [(t.state, t.marked, t.last_us) for t in follow(events, PATIENCE)]

    markers = [2 * n + 1 for n in range(50)]
    lived = [e for m in markers for e in (_produced(5 * m, m - 1), end(5 * m + 1), _control(5 * m + 2, m))]
    again = [_control(1000 + n, m) for n, m in enumerate(markers)]
    assert ended(*lived, *again) == ended(*lived) == [("committed", {"t-0"}, 5 * m + 2) for m in markers]
    still_open = [_produced(900, 100), end(901)]
    assert ended(*lived, *still_open, *again, _control(2000, 101))[-1] == ("committed", {"t-0"}, 2000)


def test_a_topic_that_was_made_anew_has_its_markers_too() -> None:
    old = [_produced(1, 1000), end(2), _control(3, 1001)]
    assert [t.state for t in follow([*old, _produced(4, 0), end(5), _control(6, 1)], PATIENCE)] == ["committed"] * 2
    first, second = follow([*old, _produced(4, 0), end(5), _control(6, 1001)], PATIENCE)  # no other can have got it
    assert (first.marked, second.marked, second.state) == ({"t-0"}, {"t-0"}, "committed")


def test_late_news_of_an_older_epoch_begins_nothing() -> None:
    assert states(add(1, epoch=4), add(2, epoch=3)) == ["ongoing"]
