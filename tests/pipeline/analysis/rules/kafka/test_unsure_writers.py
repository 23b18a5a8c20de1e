"""Batches written twice and transactions left open, beside what looks like them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules.kafka.producers.duplicate_write import DuplicateWrite
from pipeline.analysis.rules.kafka.producers.hanging_transaction import HangingTransaction
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, RECORD_BATCHES, TRANSACTIONS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
SECOND = 1_000_000
SERVER = "10.0.0.1:9092"
Row = dict[str, Any]


def us(n: float) -> int:
    return int((T0 + timedelta(seconds=n)).timestamp() * SECOND)


def look(rule: Any, end: float, **rows: list[Row]) -> list[Finding]:
    catalog = ClusterCatalog({(SERVER, "C"): Seen("C", 0, 0)})
    found: list[Finding] = rule.detect(Sources(tables(**rows), catalog, ends={"C": us(end)}), SETTINGS)
    return found


# --- duplicate_write ----------------------------------------------------------------------------------------------


class Sent:
    """A Produce request with one batch, and its exchange."""

    def __init__(self, n: float, offset: int | None, connection: str, took: float | None = 0.01, **more: Any) -> None:
        name = f"e{n:07.2f}{connection}"
        batch = {"base_timestamp": 1000, "max_timestamp": 1000, "records": 1, "size": 80, "producer_id": -1}
        where = {"cluster": "C", "topic": "t", "partition": 0, "source": "produce", "ordinal": 0, "client_id": "meter"}
        values = {name: value for name, value in more.items() if name in RECORD_BATCHES.column_names}
        self.batch = row(RECORD_BATCHES, **batch | where | {"exchange_id": name, "base_offset": offset} | values, ts=T0)
        times = {"ts": T0 + timedelta(seconds=n), "request_ts": T0 + timedelta(seconds=n)}
        answered = None if took is None else T0 + timedelta(seconds=n + took)
        self.exchange = row(
            EXCHANGES_WITH_BODIES, exchange_id=name, connection_id=connection, client_ip="10.0.0.9", api_key=0,
            server_ip=more.get("server_ip", "10.0.0.1"), response_ts=answered, error_codes=more.get("codes", []),
            **times,
        )  # fmt: skip


def read(offset: int) -> Row:
    return Sent(9, offset, "r", source="fetch").batch


HUNG = Sent(0, 11, "a", 3.0)
PLAYS: dict[str, tuple[list[Sent], list[Row], list[list[int]]]] = {
    "answered too late": ([HUNG, Sent(3.1, 12, "b")], [], [[11, 12]]),
    "answered never, and read twice": ([Sent(0, None, "a", None), Sent(2, 12, "b")], [read(11), read(12)], [[11, 12]]),
    "answered never, and read once": ([Sent(0, None, "a", None), Sent(2, 12, "b")], [read(12)], []),
    "in doubt": ([Sent(0, None, "a", codes=[7]), Sent(1, 12, "a")], [read(11), read(12)], [[11, 12]]),
    "refused": ([Sent(0, None, "a", codes=[6]), Sent(1, 12, "a")], [read(12)], []),
    "another leader": (
        [Sent(-9, 3, "b", base_timestamp=1), HUNG, Sent(3.1, 12, "b", server_ip="10.0.0.2")], [], [[11, 12]],
    ),
    "idempotent": ([Sent(0, 11, "a", 3.0, producer_id=4), Sent(3.1, 11, "b", producer_id=4)], [], []),
    "equal in one millisecond": ([Sent(0, 11, "a", 3.0), Sent(0.001, 12, "b", 3.0)], [], []),
    "one after the other": ([Sent(0, 11, "a"), Sent(1, 12, "a")], [], []),
    "two producers while the broker hangs": ([Sent(-1, 9, "b", base_timestamp=7), HUNG, Sent(1, 12, "b", 2)], [], []),
    "another batch": ([HUNG, Sent(3.1, 12, "b", size=81)], [], []),
    "another client": ([HUNG, Sent(3.1, 12, "b", client_id="other")], [], []),
}  # fmt: skip
"""What is sent, what is read of it, and the offsets of copies that must be found."""


@pytest.mark.parametrize("play", PLAYS)
def test_a_batch_is_written_twice_only_if_it_was_sent_again_and_both_are_there(play: str):
    sent, fetched, expected = PLAYS[play]
    batches = [*(one.batch for one in sent), *fetched]
    found = look(DuplicateWrite, 60, batches=batches, exchanges=[one.exchange for one in sent])
    assert [copy["offsets"] for f in found for copy in f.details["copies"]] == expected  # type: ignore[attr-defined]
    assert {(f.rule, f.subject, f.severity) for f in found} <= {("duplicate_write", "t/meter", "warning")}


def test_what_was_written_twice_before_is_counted_and_dated() -> None:
    def turn(n: float, offset: int) -> list[Sent]:
        when = int(n)
        more = {"base_timestamp": when, "max_timestamp": when}
        return [Sent(n, offset, f"a{n}", 3.0, **more), Sent(n + 3.1, offset + 1, f"b{n}", **more)]

    sent = [one for turns in (turn(0, 1), turn(20, 11), turn(1000, 21)) for one in turns]
    batches, exchanges = [one.batch for one in sent], [one.exchange for one in sent]
    (found,) = look(DuplicateWrite, 1060, batches=batches, exchanges=exchanges)
    assert (found.details["batches"], found.details["recurrences"]) == (1, 1)
    assert (found.details["first_of_all_us"], found.first_us) == (us(0), us(1000))


# --- hanging_transaction ------------------------------------------------------------------------------------------


def transaction(n: float, last: float, **more: Any) -> Row:
    when = {
        "first_ts": T0 + timedelta(seconds=n),
        "last_ts": T0 + timedelta(seconds=last),
        "first_exchange_id": f"t{n}",
    }
    what = {"cluster": "C", "transactional_id": "tx-1", "producer_id": 7, "producer_epoch": 0, "state": "ongoing"}
    who = {"client_id": "import", "client": "10.0.0.9:5", "partitions": ["t-0"], "groups": [], "complete": True}
    return row(TRANSACTIONS, **when | what | who | more)


def ended(n: float, end: float, state: str, **more: Any) -> Row:
    times = {
        "end_ts": T0 + timedelta(seconds=end),
        "duration_us": int((end - n) * SECOND),
        "end_exchange_id": f"x{end}",
    }
    return transaction(n, end, state=state, **times | more)


def taken(n: float, name: str = "tx-1", timeout: int = 600, **more: Any) -> Row:
    body = json.dumps({"transactionalId": name, "transactionTimeoutMs": timeout * 1000})
    where = {"server_ip": "10.0.0.1", "server_port": 9092, "client_ip": "10.0.0.9", "client_id": "import"}
    values = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"i{n}", "api_key": 22, "request_body": body}
    return row(EXCHANGES_WITH_BODIES, **values | where | more)


def asked(end: float) -> Row:
    """The EndTxn that ends a transaction."""
    return row(EXCHANGES_WITH_BODIES, exchange_id=f"x{end}", api_key=26, ts=T0)


FAST = [ended(-10 * n, -10 * n + 1, "committed", client_id="other", first_exchange_id=f"o{n}") for n in range(1, 4)]
SLOW = [ended(-100 * n, -100 * n + 60, "committed", first_exchange_id=f"s{n}") for n in range(1, 4)]
STATES = {
    "nothing known": ([transaction(0, 1)], [taken(0)], 100, None),
    "came back as another": ([transaction(0, 1)], [taken(0), taken(5, "tx-2")], 40, "ongoing"),
    "another host has another id": ([transaction(0, 1)], [taken(0), taken(5, "tx-2", client_ip="10.0.0.8")], 40, None),
    "one process with two ids": ([transaction(0, 1)], [taken(-1, "tx-2"), taken(0), taken(5, "tx-2")], 40, None),
    "younger than the floor": ([transaction(0, 1)], [taken(0), taken(5, "tx-2")], 25, None),
    "older than its timeout": ([transaction(0, 1)], [taken(0, timeout=60)], 90, "ongoing"),
    "its coordinator was not seen": ([transaction(0, 1)], [], 900, None),
    "others are fast": ([transaction(0, 1), *FAST], [taken(0)], 40, "ongoing"),
    "writes on": ([transaction(0, 39), *FAST], [taken(0)], 40, None),
    "always takes a minute": ([transaction(0, 1), *SLOW, *FAST], [taken(0)], 200, None),
    "five times a minute": ([transaction(0, 1), *SLOW, *FAST], [taken(0)], 310, "ongoing"),
    "aborted by its producer": ([ended(0, 70, "aborted")], [taken(0, timeout=60), asked(70)], 90, None),
    "aborted by the coordinator": ([ended(0, 70, "aborted")], [taken(0, timeout=60)], 90, "resolved"),
    "taken over": ([ended(0, 70, "aborted")], [taken(0, timeout=60), taken(69)], 90, None),
    "frames are missing": ([transaction(0, 1, complete=False), *FAST], [taken(0)], 90, None),
}


@pytest.mark.parametrize("play", STATES)
def test_a_transaction_hangs_if_nobody_is_about_to_end_it(play: str):
    rows, exchanges, end, state = STATES[play]
    found = look(HangingTransaction, end, transactions=rows, exchanges=exchanges)
    assert [(f.subject, f.state) for f in found] == ([("tx-1", state)] if state else [])


def test_the_id_that_it_came_back_under_is_named():
    (found,) = look(HangingTransaction, 40, transactions=[transaction(0, 1)], exchanges=[taken(0), taken(5, "tx-2")])
    assert found.details["came_back_as"] == "tx-2"
    assert "as tx-2 at 12:00:05 UTC" in found.summary
    assert (found.topic, found.partition, found.severity) == ("t", 0, "critical")


def test_time_that_nobody_listened_to_is_not_counted() -> None:
    """As of two captures with hours between: what came meanwhile was not captured."""
    later = [taken(n, "tx-9") for n in (40, 36000, 36010)]
    rows = [transaction(0, 1), *FAST]
    (found,) = look(HangingTransaction, 36010, transactions=rows, exchanges=[taken(0), *later])
    assert (found.state, found.last_us, found.details["known_until_us"]) == ("unknown", us(40), us(40))
    assert found.details["age_us"] == 40 * SECOND
    assert "was open for 40 s from 12:00:00 UTC on" in found.summary
    assert "the capture has nothing after 12:00:40 UTC" in found.summary
    assert "older than its timeout" not in found.summary


def test_one_that_was_open_where_a_capture_stops_is_no_trouble() -> None:
    """The next capture, hours later, is not the time that it was silent."""
    exchanges = [taken(n, name) for n, name in ((0, "tx-1"), (2, "tx-9"), (36000, "tx-9"))]
    assert look(HangingTransaction, 36000, transactions=[transaction(0, 1), *FAST], exchanges=exchanges) == []
    late = [taken(0), taken(36000, "tx-2")]  # its client began anew, when it had been ended for long
    assert look(HangingTransaction, 36000, transactions=[transaction(0, 1), *FAST], exchanges=late) == []


def test_a_coordinator_that_was_not_heard_may_have_ended_it() -> None:
    others = [{**taken(n, "tx-9"), "server_ip": "10.0.0.2"} for n in range(10, 1800, 60)]
    sources = Sources(
        tables(transactions=[transaction(0, 1), *FAST], exchanges=[taken(0), *others]),
        ClusterCatalog({(SERVER, "C"): Seen("C", 0, 0), ("10.0.0.2:9092", "C"): Seen("C", 0, 0)}),
        ends={"C": us(1790)}, server_ends={SERVER: us(0), "10.0.0.2:9092": us(1790)},
    )  # fmt: skip
    (found,) = HangingTransaction.detect(sources, SETTINGS)
    assert (found.state, found.details["age_us"]) == ("unknown", 1790 * SECOND)
    assert "after 12:00:00 UTC nothing was seen of its coordinator" in found.summary
    assert "the capture has nothing" not in found.summary


def test_the_first_offset_in_each_partition_is_what_ends_it() -> None:
    of_it = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True, "is_control": False}
    batches = [Sent(n, offset, "a", **of_it).batch for n, offset in ((0, 24), (1, 25))]
    (found,) = look(
        HangingTransaction, 40, transactions=[transaction(0, 1), *FAST], exchanges=[taken(0)], batches=batches
    )
    assert found.details["first_offsets"] == {"t-0": 24}
    assert "abort --topic t --partition 0 --start-offset 24`" in found.advice
