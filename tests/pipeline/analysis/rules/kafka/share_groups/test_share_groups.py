"""Records that share groups give back or hold, beside groups in good health."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.rules.kafka.share_groups import share_groups
from pipeline.analysis.rules.kafka.share_groups.share_groups import silences, suspects
from pipeline.analysis.rules.kafka.share_groups.share_states import Delivery, SharePlace, deliveries, starts_moved
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_EVENTS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
SECOND = 1_000_000
SERVER = "10.0.0.1:9092"
FETCH, ACKNOWLEDGE, HEARTBEAT = 78, 79, 76
ACCEPT, RELEASE, REJECT = 1, 2, 3
Row = dict[str, Any]


def at(n: float) -> dict[str, Any]:
    return {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:07.2f}"}


def share(n: float, api_key: int, request: Row, response: Row, group: str = "g", **more: Any) -> Row:
    where = {"server_ip": "10.0.0.1", "server_port": 9092, "client_ip": "10.0.0.9", "client_id": "packer"}
    asked = json.dumps({"groupId": group, "memberId": "m", **request}, separators=(",", ":"))
    bodies = {"request_body": asked, "response_body": json.dumps(response, separators=(",", ":"))}
    values = {**at(n), "api_key": api_key, "response_ts": T0 + timedelta(seconds=n), "error_codes": []}
    return row(EXCHANGES_WITH_BODIES, **values | where | bodies | more)


def got(n: float, first: int, last: int, count: int = 1) -> Row:
    acquired = [{"firstOffset": first, "lastOffset": last, "deliveryCount": count}]
    part = {"partitionIndex": 0, "errorCode": 0, "acknowledgeErrorCode": 0, "acquiredRecords": acquired}
    answer = {"acquisitionLockTimeoutMs": 4000, "responses": [{"topicId": "T", "partitions": [part]}]}
    return share(n, FETCH, {"topics": []}, answer)


def said(n: float, first: int, last: int, *types: int, refused: int = 0, api_key: int = ACKNOWLEDGE) -> Row:
    batch = {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": list(types)}
    topics = [{"topicId": "T", "partitions": [{"partitionIndex": 0, "acknowledgementBatches": [batch]}]}]
    code = "acknowledgeErrorCode" if api_key == FETCH else "errorCode"
    answer = {"responses": [{"topicId": "T", "partitions": [{"partitionIndex": 0, code: refused}]}]}
    return share(n, api_key, {"topics": topics}, answer)


def written(n: float, offset: int) -> Row:
    what = {"kind": "produced", "topic": "orders", "partition": 0, "cluster": "C", "ordinal": 0}
    return row(OFFSET_EVENTS, **at(n) | what, offset=offset - 1, next_offset=offset)


def beat(n: float, epoch: int = 3) -> Row:
    return share(n, HEARTBEAT, {"memberEpoch": epoch}, {"errorCode": 0})


def look(exchanges: list[Row], events: list[Row] | None = None, end: float = 60) -> list[Finding]:
    catalog = ClusterCatalog({(SERVER, "C"): Seen("C", 0, 0)}, {("C", "T"): Seen("orders", 0, 0)})
    made = Sources(tables(exchanges=exchanges, events=events or []), catalog, ends={"C": us(end)})
    return share_groups.share_group_troubles(made, SETTINGS)


def us(n: float) -> int:
    return int((T0 + timedelta(seconds=n)).timestamp() * SECOND)


def again(*ends: int) -> list[Row]:
    """Offset 5 is delivered and given back so often; another record is accepted each time."""
    rows = [got(0, 5, 5), said(0.5, 5, 5, RELEASE)]
    for n, end in enumerate(ends, 2):
        rows += [got(n, 5, 5, n), got(n + 0.1, 10 + n, 10 + n), said(n + 0.3, 10 + n, 10 + n, ACCEPT)]
        rows += [said(n + 0.5, 5, 5, end)] if end else []
    return rows


POISONED: dict[str, tuple[list[Row], float, str | None]] = {
    "released again and again": (again(RELEASE, RELEASE, RELEASE), 5, "ongoing"),
    "given up by the broker": (again(RELEASE, RELEASE, RELEASE), 60, "resolved"),
    "held until its lock ends": (again(0, 0, 0), 5, "ongoing"),
    "rejected at last": (again(RELEASE, RELEASE, REJECT), 60, "resolved"),
    "accepted at last": (again(RELEASE, RELEASE, ACCEPT), 60, "resolved"),
    "released once": (again(ACCEPT), 60, None),
    "nothing gets on": ([got(n, 5, 5, n) for n in range(1, 5)], 10, None),
    "a crowd comes again": ([got(n, 0, 5000, n) for n in range(1, 5)] + [said(3.5, 9000, 9000, ACCEPT)], 10, None),
}
"""What is delivered and said, when the capture ends, and the state of the record that must be found."""


@pytest.mark.parametrize("play", POISONED)
def test_a_record_that_comes_again_and_again_is_found(play: str):
    rows, end, state = POISONED[play]
    found = [f for f in look(rows, end=end) if f.rule == "poison_record"]
    assert [(f.subject, f.state) for f in found] == ([("g/orders-0", state)] if state else [])
    for one in found:
        assert (one.group_id, one.topic, one.partition, one.details["offsets"]) == ("g", "orders", 0, [5])
        assert "offset 5" in one.summary


WORK = [one for n in range(20) for one in (got(n, 4 * n, 4 * n + 3), said(n + 0.5, 4 * n, 4 * n + 3, ACCEPT))]
WRITTEN = [written(n, 4 * n + 4) for n in range(60)]
SILENT: dict[str, tuple[list[Row], list[Row], float, tuple[str, str] | None]] = {
    "hangs": ([*WORK, *(beat(n) for n in range(60))], WRITTEN, 60, ("ongoing", "critical")),
    "is gone": (WORK, WRITTEN, 60, ("ongoing", "critical")),
    "has left": ([*WORK, beat(20, -1)], WRITTEN, 60, ("ongoing", "warning")),
    "hung and continued": (
        [*WORK, said(50, 80, 90, ACCEPT), said(51, 91, 99, ACCEPT)],
        WRITTEN,
        52,
        ("resolved", "critical"),
    ),
    "works": (WORK, WRITTEN, 21, None),
    "has nothing to read": (WORK, WRITTEN[:20], 60, None),
    "always pauses": ([one for one in WORK if one["ts"].second in (0, 19)], WRITTEN, 40, None),
}
"""What is said, what is written, when the capture ends, and state and severity of what must be found."""


@pytest.mark.parametrize("play", SILENT)
def test_a_group_that_says_nothing_more_while_records_wait_is_found(play: str):
    rows, events, end, expected = SILENT[play]
    found = [f for f in look(rows, events, end) if f.rule == "stopped"]
    assert [(f.subject, f.state, f.severity) for f in found] == ([("g/orders", *expected)] if expected else [])


def test_a_member_that_hangs_is_told_from_one_that_is_gone():
    (hangs,) = look(SILENT["hangs"][0], WRITTEN)
    (gone,) = look(SILENT["is gone"][0], WRITTEN)
    assert "packer at 10.0.0.9 still sent heartbeats" in hangs.summary
    assert "its members have sent nothing since" in gone.summary


def test_nobody_is_sent_to_members_that_have_left() -> None:
    (hangs,), (left,), (gone,) = (look(SILENT[play][0], WRITTEN) for play in ("hangs", "has left", "is gone"))
    assert "members named here" in hangs.advice
    assert "start the application again" in left.advice
    assert "look whether its processes run" in gone.advice
    assert all("--describe --group g --members" in one.advice for one in (left, gone))


def test_the_command_that_reads_a_record_names_its_topic() -> None:
    rows, end, _ = next(play for play in POISONED.values() if play[2])
    (found,) = [one for one in look(rows, end=end) if one.rule == "poison_record"]
    assert "--bootstrap-server BROKER --topic orders --partition 0 --offset 5 --max-messages 1" in found.advice


def test_the_rhythm_of_the_group_counts():
    steady = [us(n) for n in range(0, 300, 30)]
    assert list(silences(steady, us(300), SETTINGS)) == []
    assert list(silences(steady, us(500), SETTINGS)) == [(us(270), us(500), us(360), False)]
    assert list(silences([us(0)], us(500), SETTINGS)) == []


def test_a_silence_that_was_told_of_is_not_the_rhythm_of_the_group():
    told = [us(n) for n in (*range(0, 300, 30), *range(470, 660, 30), *range(830, 1000, 30))]
    twice = [(us(270), us(470), us(360), True), (us(650), us(830), us(740), True)]
    assert list(silences(told, us(980), SETTINGS)) == twice
    often = [us(1000 * n + m) for n in range(9) for m in range(0, 300, 30)]
    assert len(list(silences(often, us(8270), SETTINGS))) == 3  # then it is


def test_a_record_that_comes_again_much_later_is_another_time():
    def given_back(n: float, offset: int) -> list[Row]:
        return [
            row
            for times in range(1, 4)
            for row in (got(n + times, offset, offset, count=times), said(n + times + 0.5, offset, offset, RELEASE))
        ]

    fine = [row for n in range(0, 400, 2) for row in (got(n, 100 + n, 100 + n), said(n + 1, 100 + n, 100 + n, ACCEPT))]
    (found,) = look([*given_back(0, 5), *given_back(300, 6), *fine], [], end=400)
    assert (found.details["offsets"], found.details["recurrences"]) == ([6], 1)
    assert "The record at offset 6" in found.summary


def test_acknowledgements_come_with_either_request_and_for_each_offset():
    rows = [said(1, 5, 9, ACCEPT, ACCEPT, REJECT, RELEASE, RELEASE), said(2, 5, 5, ACCEPT, api_key=FETCH)]
    catalog = ClusterCatalog({(SERVER, "C"): Seen("C", 0, 0)}, {})
    found = deliveries(Sources(tables(exchanges=rows), catalog))
    assert [(one.first, one.last, one.what) for one in found] == [
        (5, 6, ACCEPT), (7, 7, REJECT), (8, 9, RELEASE), (5, 5, ACCEPT),
    ]  # fmt: skip
    assert found[0].place == SharePlace("C", "g", "T", 0)


def test_what_a_broker_refuses_was_not_said():
    assert deliveries(Sources(tables(exchanges=[said(1, 5, 5, ACCEPT, refused=121)]))) == []


def test_only_what_comes_often_enough_is_suspect():
    place = SharePlace("C", "g", "t", 0)

    def delivery(us: int, offset: int, what: int | None, count: int = 0) -> Delivery:
        return Delivery(place, us, offset, offset, what, count, 0, "m", "c", f"e{us}")

    some = [delivery(1, 5, None, 2), delivery(2, 6, None, 3), delivery(3, 6, RELEASE), delivery(4, 6, None, 4)]
    (found,) = suspects(some, 3)
    assert (found.offset, found.deliveries, found.end) == (6, 4, "held")


def test_two_members_that_poll_at_their_own_moments_are_no_rhythm_of_seconds():
    told = sorted(us(30 * n + m) for n in range(9) for m in (0, 2))
    assert list(silences(told, us(260), SETTINGS)) == []


@pytest.mark.parametrize("cut", [{}, {"firstOffset": 5}, {"firstOffset": 5, "lastOffset": 5}, {"firstOffset": "5"}, 7])
def test_a_batch_that_was_cut_off_is_left_out_and_those_before_it_stay(cut: object) -> None:
    whole = {"firstOffset": 1, "lastOffset": 2, "deliveryCount": 1}
    part = {"partitionIndex": 0, "errorCode": 0, "acknowledgeErrorCode": 0, "acquiredRecords": [whole, cut]}
    cut_parts = [part, {"partitionIndex": 1}, {}]
    answer = {"responses": [{"topicId": "T", "partitions": cut_parts}, {"topicId": "U"}]}
    seen = deliveries(Sources(tables(exchanges=[share(1, FETCH, {"topics": []}, answer)])))
    assert [(one.first, one.last, one.what) for one in seen] == [(1, 2, None)]


@pytest.mark.parametrize("answered", [{}, {"errorCode": None}])
def test_what_was_said_counts_only_once_its_answer_is_known(answered: Row) -> None:
    batch = {"firstOffset": 1, "lastOffset": 2, "acknowledgeTypes": [ACCEPT]}
    topics = [{"topicId": "T", "partitions": [{"partitionIndex": 0, "acknowledgementBatches": [batch, {}]}]}]
    answer = {"responses": [{"topicId": "T", "partitions": [{"partitionIndex": 0, **answered}]}]}
    assert not deliveries(Sources(tables(exchanges=[share(1, ACKNOWLEDGE, {"topics": topics}, answer)])))


def test_a_start_offset_without_its_partition_or_group_is_no_statement() -> None:
    place = {"partition": 0, "startOffset": 5}
    for topics in ([{"topicId": "T", "partitions": [{"startOffset": 5}]}], [{"partitions": [place]}], 5, [7]):
        told = share(1, 85, {"topics": topics}, {})
        assert not starts_moved(Sources(tables(exchanges=[told])))
    told = share(1, 85, {"topics": [{"topicId": "T", "partitions": [place, {}]}]}, {})
    assert [one.offset for one in starts_moved(Sources(tables(exchanges=[told])))] == [5]
