"""Each rule on traffic made by hand: the incident, and the healthy traffic that looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from pipeline.analysis.rules.kafka.commits.competing_committers import CompetingCommitters
from pipeline.analysis.rules.kafka.commits.stuck_commit import StuckCommit
from pipeline.analysis.rules.kafka.producers import stable_offsets
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import (
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TRANSACTIONS,
)
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row

Row = dict[str, Any]


def commit(n: int, who: str, offset: int, generation: int | None = 1, **more: Any) -> Row:
    ts = T0 + timedelta(seconds=n)
    by = {"client_id": who, "member_id": f"{who}-m", "client": f"10.0.0.9:{sum(map(ord, who))}"}
    what = {"kind": "committed", "topic": "t", "partition": 2, "group_id": "g", "cluster": "C", "ordinal": 0}
    values = by | what | {"ts": ts, "exchange_id": f"e{n:04}", "offset": offset, "generation": generation}
    return row(OFFSET_EVENTS, **values | more)


def position(n: int, fetched: int) -> Row:
    what = {"kind": "fetched", "topic": "t", "partition": 2, "group_id": "g", "cluster": "C", "ordinal": 0}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"f{n:04}"}
    return row(OFFSET_TIMELINE, **what | when, client_id="reader", fetch_position=fetched)


def seen(n: int, high: int, stable: int, **more: Any) -> Row:
    what = {"kind": "fetched", "topic": "t", "partition": 2, "cluster": "C", "ordinal": 0, "error_code": 0}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:04}"}
    values = {"high_watermark": high, "last_stable_offset": stable, "isolation_level": "read_uncommitted"}
    return row(OFFSET_EVENTS, **what | when | values | {"client_id": "viewer", "client": "10.0.0.7:1"} | more)


def _us(ts: datetime) -> int:
    return int(ts.timestamp() * 1_000_000)


def batch(n: int, base: int, last: int, **more: Any) -> Row:
    what = {"topic": "t", "partition": 2, "cluster": "C", "ordinal": 0, "source": "produce", "is_control": False}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:04}"}
    values = {"base_offset": base, "last_offset": last, "is_transactional": True, "producer_id": 7, "producer_epoch": 3}
    return row(RECORD_BATCHES, **what | when | values | more)


INCIDENT = [
    commit(0, "a", 10), commit(1, "b", 20), commit(2, "a", 10), commit(3, "b", 30), commit(4, "a", 10),
]  # fmt: skip
STALLED = [seen(n, 20 + 2 * n, 15) for n in range(10)]
_STARVING = seen(5, 30, 15, isolation_level="read_committed", client_id="reports", offset=15, exchange_id="s")
_WRITER = {"kind": "produced", "transactional_id": "tx", "client_id": "writer", "client": "10.0.0.8:5"}
_WRITE = seen(0, 0, 0, producer_id=7, **_WRITER) | {"high_watermark": None, "last_stable_offset": None}
_INIT = row(
    STATE_EVENTS, ts=T0, kind="txn_init", cluster="C", client_id="writer", client="10.0.0.8:6", transactional_id="tx",
    producer_id=8, error_code=0,
)  # fmt: skip
_ELSEWHERE = _INIT | {"transactional_id": "other", "client_id": "other"}


def transaction(seconds: int, duration: int) -> Row:
    when = {"first_ts": T0 + timedelta(seconds=seconds), "duration_us": duration * 1_000_000, "state": "committed"}
    return row(TRANSACTIONS, cluster="C", partitions=["t-2"], groups=[], first_exchange_id=f"x{seconds}", **when)


def _fetched_in_session(n: int, offset: int | None) -> Row:
    """An answer of an incremental session names no offset where the request did not."""
    of = {"client_id": "java", "client": "10.0.0.6:1", "server": "b:1", "session_id": 9, "session_epoch": n}
    return seen(n, 22 + n, 15, isolation_level="read_committed", offset=offset, exchange_id=f"j{n}", **of)


def _in_session(n: int) -> Row:
    of = {"client_id": "java", "client": "10.0.0.6:1", "server": "b:1", "session_id": 9, "session_epoch": n}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"j{n}"}
    return row(STATE_EVENTS, kind="fetch_session", cluster="C", error_code=0, **of, **when)


_TWICE = [*STALLED, *(seen(n, 60, 15) for n in range(10, 20)), seen(20, 60, 60)]
_TWICE += [seen(n, 60 + 2 * (n - 20), 60) for n in range(21, 30)]
_BETWEEN = [*(seen(n, 20 + 2 * n, 15) for n in range(30)), seen(30, 90, 90)]
_BETWEEN += [seen(n, 90 + 4 * (n - 30), 90) for n in range(31, 38)]
_OLD_AND_NEW = [commit(n, "ab"[n % 2], 10 if n % 2 == 0 else 20 + n) for n in range(20)]
_OLD_AND_NEW += [commit(100 + n, "cb"[n % 2], 50 if n % 2 == 0 else 60 + n) for n in range(6)]


SLOW_RECORD = [commit(5 * n, "a", 100 if n < 8 else 100 + 50 * n) for n in range(12)]
"""Who commits the lowest offset that is finished stays at it for 35 s, because one record takes so long."""


@dataclass(frozen=True)
class Play:
    """What happens in one scenario."""

    events: Sequence[Row] = ()
    timeline: Sequence[Row] = ()
    batches: Sequence[Row] = ()
    states: Sequence[Row] = ()
    transactions: Sequence[Row] = ()


PLAYS = {
    "incident": Play(INCIDENT),
    "one client": Play([e | {"client_id": "a", "member_id": "m", "client": "h:1"} for e in INCIDENT]),
    "handed over": Play(
        [commit(0, "a", 10), commit(1, "a", 10), commit(2, "a", 10), commit(3, "b", 20, 2), commit(4, "b", 30, 2)]
    ),
    "idle": Play([commit(n, "a", 10) for n in range(9)], [position(n, 10) for n in range(9)]),
    "slow": Play([commit(n, "a", 10) for n in range(5)], [position(n, 11 + n) for n in range(9)]),
    "never follows": Play([commit(n, "a", 10) for n in range(9)], [position(n, 11 + n) for n in range(9)]),
    "never follows for long": Play(
        [commit(5 * n, "a", 10) for n in range(70)], [position(5 * n, 11 + n) for n in range(70)]
    ),
    "follows no more": Play(
        [*(commit(5 * n, "a", 10 * n) for n in range(13)), *(commit(5 * n, "a", 120) for n in range(13, 25))],
        [position(5 * n + 1, 10 * n + 30) for n in range(25)],
    ),
    "slow record at once": Play(SLOW_RECORD, [position(5 * n, 150 + 50 * n) for n in range(12)]),
    "slow record": Play(
        [commit(5 * n, "a", 120 if 12 <= n < 20 else 10 * n) for n in range(25)],
        [position(5 * n + 1, 10 * n + 150) for n in range(25)],
    ),
    "slow records": Play(
        [commit(5 * n, "a", 100 + 50 * (n // 7)) for n in range(42)],
        [position(5 * n + 1, 10 * n + 150) for n in range(42)],
    ),
    "refused": Play([e | {"kind": "commit_rejected"} if e["client_id"] == "a" else e for e in INCIDENT]),
    "wandering": Play([commit(n, "ab"[n % 2], 10 + n, generation=n) for n in range(8)]),
    "memberless": Play([e | {"generation": None, "member_id": ""} for e in INCIDENT]),
    "stalled": Play(
        [_WRITE, *STALLED, _STARVING],
        batches=[batch(0, 10, 14, producer_id=6), batch(0, 15, 17)],
        transactions=[transaction(-9 * n, 1) for n in range(1, 4)],
    ),
    "committed late": Play(
        [_WRITE, *STALLED, seen(11, 40, 40)],
        batches=[batch(0, 15, 17)],
        transactions=[transaction(0, 11) | {"producer_id": 7, "last_ts": T0 + timedelta(seconds=11)}],
    ),
    "in a session": Play(
        [_fetched_in_session(0, 15), *STALLED, _fetched_in_session(3, None)],
        states=[_in_session(n) for n in range(10)],
    ),
    "starves late": Play([*STALLED, *(_fetched_in_session(n, 15) for n in range(6, 10))]),
    "healed": Play([*INCIDENT, *(commit(n, "b", 30 + n) for n in range(5, 30))]),
    "comes back": Play([*INCIDENT[:-1], *(commit(n, "b", 30 + n) for n in range(4, 30)), commit(30, "a", 10)]),
    "introduced": Play(STALLED, batches=[batch(0, 15, 17, producer_id=8)], states=[_INIT]),
    "another cluster": Play(states=[_ELSEWHERE]),
    "stalled twice": Play(_TWICE),
    "checkpoints": Play(STALLED, transactions=[transaction(-9 * n, 4) for n in range(3)]),
    "stalled between checkpoints": Play(_BETWEEN, transactions=[transaction(-9 * n, 4) for n in range(3)]),
    "always hangs": Play(STALLED, transactions=[transaction(-99 * n, 60) | {"state": "aborted"} for n in range(3)]),
    "longer than usual": Play(STALLED, transactions=[transaction(-9 * n, 2) for n in range(3)]),
    "stuck twice": Play(_OLD_AND_NEW),
    "unseen": Play(STALLED),
    "over": Play([*STALLED, seen(11, 40, 40)]),
    "lagging": Play([seen(n, 20 + 5 * n, 15 + 5 * n) for n in range(20)]),
    "no growth": Play([seen(n, 20, 15) for n in range(20)]),
}
"""Each plays in a cluster of its own."""


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Finding]:
    """All findings by scenario and rule."""

    def rows(part: str) -> list[Row]:
        return [
            one
            | ({"cluster": name} if "cluster" in one else {})
            | ({"exchange_id": f"{name}/{one['exchange_id']}"} if "exchange_id" in one else {})
            for name, play in PLAYS.items()
            for one in getattr(play, part)
        ]

    made = sources(**{part: rows(part) for part in ("events", "batches", "timeline", "states", "transactions")})
    ends = {name: _us(max(one["ts"] for one in play.events)) for name, play in PLAYS.items() if play.events}
    made = replace(made, ends=ends)
    findings = [
        f
        for find in (StuckCommit.detect, CompetingCommitters.detect, stable_offsets.stalls_and_starved)
        for f in find(made, finding_settings())
    ]
    by_place = {(f.cluster, f.rule): f for f in findings}
    assert len(by_place) == len(findings)
    return by_place


Found = dict[tuple[str, str], Finding]
STUCK, COMPETING, LSO = "stuck_commit", "competing_committers", "lso_stalled"
STARVED = "read_committed_starved"


def test_an_old_offset_that_comes_again_and_again_is_stuck(found: Found) -> None:
    stuck = found["incident", STUCK]
    assert (stuck.subject, stuck.severity) == ("g/t-2", "critical")
    assert stuck.details["old_offset"] == 10
    assert stuck.details["committer"] == {"client_id": "a", "member_id": "a-m", "address": "10.0.0.9:97"}
    assert stuck.details["other_committer"] == {"client_id": "b", "member_id": "b-m", "address": "10.0.0.9:98"}
    assert (stuck.details["real_position"], stuck.details["records_behind"], stuck.details["repeats"]) == (30, 20, 3)
    assert list(stuck.evidence) == ["incident/e0000", "incident/e0002", "incident/e0004"]
    assert "a (member a-m, 10.0.0.9:97) committed offset 10 3 times" in stuck.summary


def test_two_workers_of_one_client_can_be_stuck_as_well(found: Found) -> None:
    assert "another worker of the same client" in found["one client", STUCK].summary


def test_a_commit_that_never_follows_the_reader_is_stuck(found: Found) -> None:
    details = found["never follows", STUCK].details
    assert (details["reader"], details["other_committer"]) == ("reader", None)
    assert found["never follows", STUCK].severity == "info"  # one record may take so long: there was no other yet
    assert found["follows no more", STUCK].severity == "critical"
    assert found["never follows for long", STUCK].severity == "critical"


def test_who_commits_what_is_finished_may_stay_while_one_record_takes_long(found: Found) -> None:
    assert ("slow record at once", STUCK) not in found
    slow = found["slow record", STUCK]
    assert (slow.severity, slow.state) == ("info", "resolved")
    assert "Then, at 12:01:40 UTC, it moved on." in slow.summary
    assert slow.advice.startswith("Now: nothing, ")
    assert ("slow records", STUCK) not in found


def test_two_who_commit_by_turns_compete(found: Found) -> None:
    competing = found["incident", COMPETING]
    assert (competing.subject, competing.details["returns"]) == ("g/t-2", 3)
    assert [w["client_id"] for w in competing.details["committers"]] == ["a", "b"]  # type: ignore[attr-defined]
    assert ("memberless", COMPETING) in found


@pytest.mark.parametrize(
    "healthy",
    ["handed over", "idle", "slow", "refused", "wandering", "lagging", "no growth", "checkpoints"],
)
def test_what_only_looks_like_trouble_gives_no_finding(found: Found, healthy: str) -> None:
    """In order: a hand-over after a rebalance; an idle client that commits the end again; a slow worker that holds the
    commit for a while; commits that the broker refused; a partition that moves with each rebalance; transactions that
    commit; an open transaction behind which nothing is written; transactions that usually are open for so long."""
    assert [rule for name, rule in found if name == healthy] == []


def test_a_stalled_lso_names_the_producer_and_who_starves(found: Found) -> None:
    stall = found["stalled", LSO]
    assert (stall.subject, stall.severity) == ("t-2", "critical")
    expected = {
        "producer_id": 7, "producer_epoch": 3, "transactional_id": "tx", "client_id": "writer", "first_offset": 15,
        "last_stable_offset": 15, "high_watermark": 38, "resolved": False, "address": "10.0.0.8:5",
    }  # fmt: skip
    assert {key: stall.details[key] for key in expected} == expected
    assert [s["client_id"] for s in stall.details["starved_consumers"]] == ["reports"]  # type: ignore[attr-defined]


def test_a_producer_that_only_initproducerid_introduced_is_named(found: Found) -> None:
    details = found["introduced", LSO].details
    assert (details["transactional_id"], details["address"]) == ("tx", "10.0.0.8:6")


def test_of_several_troubles_of_a_partition_the_last_is_reported(found: Found) -> None:
    stall, stuck = found["stalled twice", LSO], found["stuck twice", STUCK]
    assert (stall.details["last_stable_offset"], stall.state) == (60, "ongoing")
    assert (stuck.details["old_offset"], stuck.details["committer"]["client_id"]) == (50, "c")  # type: ignore[index]


def test_a_transaction_that_is_open_much_longer_than_usual_stalls(found: Found) -> None:
    assert ("longer than usual", LSO) in found
    between = found["stalled between checkpoints", LSO]
    assert (between.details["last_stable_offset"], between.state) == (15, "resolved")


def test_too_few_transactions_to_know_what_is_long_are_told_for_information(found: Found) -> None:
    assert found["unseen", LSO].severity == "info"
    assert "Too few transactions" in found["unseen", LSO].summary
    assert found["longer than usual", LSO].severity == "critical"


def test_a_transaction_that_was_committed_was_only_long(found: Found) -> None:
    late = found["committed late", LSO]
    assert (late.state, late.severity) == ("resolved", "info")


def test_who_starves_in_a_fetch_session_is_found_by_the_position_that_it_carries(found: Found) -> None:
    starved = found["in a session", STARVED]
    assert (starved.subject, starved.details["fetches"]) == ("java/t-2", 10)


def test_who_starves_is_told_once_it_has_asked_often_enough_and_the_offset_stood_for_long_enough(found: Found) -> None:
    enough = {name: found[name, STARVED].details["enough_us"] for name in ("in a session", "starves late")}
    assert enough == {"in a session": _us(T0) + 5_000_000, "starves late": _us(T0) + 8_000_000}
    assert enough["in a session"] == found["in a session", LSO].details["enough_us"]


def test_a_stuck_commit_is_over_when_the_group_is_where_it_was_and_not_before(found: Found) -> None:
    assert found["healed", STUCK].state == "resolved"
    assert found["comes back", STUCK].state == "ongoing"


def test_a_producer_that_is_always_aborted_has_no_usual_time(found: Found) -> None:
    assert ("always hangs", LSO) in found


def test_an_unseen_producer_is_reported_as_unknown(found: Found) -> None:
    stall = found["unseen", LSO]
    assert stall.details["producer_id"] is None
    assert "not captured" in stall.summary


def test_a_stall_that_is_over_is_less_severe(found: Found) -> None:
    stall = found["over", LSO]
    assert (stall.severity, stall.details["resolved"]) == ("warning", True)


def test_finding_ids_differ_by_cluster_only_where_they_must() -> None:
    def made(cluster: str, summary: str) -> Finding:
        return Finding("r", "info", "s", "ongoing", cluster, "t", 0, None, 0, 0, summary, "")

    assert made("C", "one").finding_id == made("C", "two").finding_id
    assert made("C", "one").finding_id != made("D", "one").finding_id
