"""Rules about MongoDB on commands made by hand: the incident, and the healthy traffic that looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.codes.mongodb.table import MONGODB
from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.mongodb import commands
from pipeline.analysis.rules.mongodb.commands import FAILED, LEAK, RETRIES, SLOW
from pipeline.analysis.rules.mongodb.mongo_command_failed import MongoCommandFailed
from pipeline.analysis.rules.mongodb.mongo_cursor_leak import LeftOpen, MongoCursorLeak, leak
from pipeline.analysis.rules.mongodb.mongo_retry_storm import MongoRetryStorm
from pipeline.analysis.rules.mongodb.mongo_slow_command import MongoSlowCommand
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, GAPS, MONGO_COMMANDS
from tests.pipeline.analysis.sources import detected, sources
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
SECOND = 1_000_000
Row = dict[str, Any]


@pytest.mark.parametrize(("idle_seconds", "state"), [(40, "ongoing"), (599, "ongoing"), (600, "resolved")])
def test_a_cursor_leak_is_over_when_the_server_has_forgotten(idle_seconds: int, state: str):
    left = LeftOpen("S", "10.0.0.1", None, 12, 0, SECOND, ("a.b",), ("e",) * 12, tuple(range(12)))
    finding = leak([left], (idle_seconds + 1) * SECOND, SETTINGS)
    assert (finding.rule, finding.subject, finding.state) == (LEAK, "?/10.0.0.1", state)
    assert finding.summary.startswith("an application without name at 10.0.0.1 left 12 cursors open on S, used last ")


def command(n: float, name: str, **more: Any) -> Row:
    what = {"command": name, "database": "shop", "collection": "orders", "application": "app", "client_ip": "10.0.0.1"}
    values = {"ok": True, "write_errors": 0, "latency_us": 900, "exchange_id": f"e{n:08.3f}", "server": "S"}
    return row(MONGO_COMMANDS, **what | values | {"ts": T0 + timedelta(seconds=n)} | more)


def error(n: float, code: int | None, **more: Any) -> Row:
    return command(n, "update", **{"ok": False, "error_code": code, "error_name": "Name"} | more)


def write(n: float, number: int, **more: Any) -> Row:
    return command(n, "insert", session_id="s", txn_number=number, **more)


def cursor(n: float, number: int, *, left: int | None = None, name: str = "find", **more: Any) -> Row:
    return command(n, name, cursor_id=number, cursor_left=number if left is None else left, **more)


SLOWLY = {"latency_us": SECOND}
SLOW_INFO, FAILED_INFO, RETRIES_INFO = (f"{rule} for information" for rule in (SLOW, FAILED, RETRIES))
USUAL = [command(n - 900, "find") for n in range(40)]


def update(n: float, fails: bool = False, **more: Any) -> Row:
    return command(n, "update", **{"ok": not fails, "error_code": 121 if fails else None, "error_name": "Name"} | more)


def login(n: float, name: str = "saslStart", code: int | None = None) -> Row:
    outcome = {"ok": code is None, "error_code": code, "error_name": code and "AuthenticationFailed"}
    return command(n, name, **outcome, database="admin", collection=None)


OPENED = [cursor(n, 100 + n) for n in range(10)]
LATER = command(60, "ping")
PLAYS: dict[str, tuple[list[Row], set[str]]] = {
    "slow": ([*USUAL, *(command(n, "find", **SLOWLY) for n in range(3))], {SLOW}),
    "slow as far as is known": ([command(n, "find", **SLOWLY) for n in range(3)], {SLOW_INFO}),
    "slow where others are not": (
        [*(one | {"application": "other"} for one in USUAL), *(command(n, "find", **SLOWLY) for n in range(3))],
        {SLOW},
    ),
    "a report that takes long": ([command(10 * n, "aggregate", latency_us=2 * SECOND) for n in range(300)], set()),
    "a report that takes far longer": (
        [command(10 * n, "aggregate", latency_us=(2 + 20 * (n > 250)) * SECOND) for n in range(300)],
        {SLOW},
    ),
    "slow twice": ([command(n, "find", **SLOWLY) for n in range(2)], set()),
    "waits by design": ([command(n, "hello", is_awaiting=True, **SLOWLY) for n in range(9)], set()),
    "tails": (
        [cursor(n, 5, name="getMore", documents_out=n % 2, **SLOWLY) for n in range(9)]
        + [cursor(20, 5, left=0, name="getMore")],
        set(),
    ),
    "reads slowly": ([cursor(n, 5, name="getMore", documents_out=9, **SLOWLY) for n in range(3)], {SLOW_INFO}),
    "fails": ([error(n, 9) for n in range(3)], {FAILED}),
    "fails without a code": ([error(n, None, error_name=None) for n in range(3)], {FAILED}),
    "a refused login": ([login(0), login(1, "saslContinue", 18)], {FAILED}),
    "a refused login of many": ([*(login(n / 10) for n in range(50)), login(6, code=18)], {FAILED_INFO}),
    "logins": ([login(n, name) for n in range(9) for name in ("saslStart", "saslContinue", "authenticate")], set()),
    "logins of which nobody knows how they ended": ([login(n) | {"ok": None} for n in range(9)], set()),
    "a user that is there already": ([login(0, "createUser", 51003)], set()),
    "three of many fail": ([update(n, n in (100, 300, 450)) for n in range(500)], {FAILED_INFO}),
    "three in a row of many fail": ([update(n, 200 <= n < 203) for n in range(500)], {FAILED_INFO}),
    "many in a row fail": ([update(n, 200 <= n < 211) for n in range(500)], {FAILED}),
    "fails beside others": (
        [*(update(n) for n in range(300)), *(error(n * 50, 9, application="importer") for n in range(6))],
        {FAILED},
    ),
    "writes fail": ([error(n, 121, ok=True, write_errors=2) for n in range(3)], {FAILED}),
    "learns what is there": ([error(n, 11000, ok=True, write_errors=1) for n in range(9)], set()),
    "closes": ([error(n, 59, command="endSessions") for n in range(9)], set()),
    "a transaction that need not be aborted": ([error(n, 251, command="abortTransaction") for n in range(9)], set()),
    "a find that a capped collection has overtaken": ([error(n, 136, command="find") for n in range(9)], {FAILED}),
    "conflicts": ([error(n, 112) for n in range(5)], {RETRIES}),
    "conflicts in a busy application": (
        [update(n / 10, n % 20 == 0, error_code=112 if n % 20 == 0 else None) for n in range(400)],
        {RETRIES_INFO},
    ),
    "conflicts now and then": ([one for n in range(9) for one in (error(60 * n, 112), update(60 * n + 1))], set()),
    "conflicts without end, though seldom": ([error(60 * n, 112) for n in range(5)], {RETRIES}),
    "no primary for a job that runs each five minutes": ([error(301 * n, 10107) for n in range(5)], {RETRIES}),
    "fails each five minutes": ([error(301 * n, 9) for n in range(3)], {FAILED}),
    "fails twice an hour": ([error(1800 * n, 9) for n in range(9)], set()),
    "repeats": ([write(n + m / 2, n) for n in range(5) for m in range(2)], {RETRIES}),
    "repeats each half minute": ([write(30 * n + m / 2, n) for n in range(6) for m in range(2)], {RETRIES}),
    "repeats now and then": (
        [*(write(n, n) for n in range(400)), *(write(60 * n + 0.5, 60 * n) for n in range(6))],
        set(),
    ),
    "one repeat among conflicts": (
        [
            *(update(15 * n) for n in range(35)),
            *(error(100 * n, 112, command="update") for n in range(5)),
            write(300, 7),
            write(301, 7),
        ],
        set(),
    ),
    "one transaction": ([write(n, 1, is_transaction=True) for n in range(9)], set()),
    "many sessions": ([write(n, 1) | {"session_id": f"s{n}"} for n in range(9)], set()),
    "leaks": ([*OPENED, LATER], {LEAK}),
    "has just opened": (OPENED, set()),
    "reads to the end": ([*OPENED, *(cursor(20 + n, 100 + n, left=0, name="getMore") for n in range(9)), LATER], set()),
    "kills": ([*OPENED, command(20, "killCursors", cursor_id=100, cursors_killed=[100, 101]), LATER], set()),
    "continues": ([*OPENED, cursor(59, 100, name="getMore"), LATER], set()),
    "is pushed": ([*OPENED, cursor(20, 100, name="getMore", is_answered_later=True), LATER], set()),
    "cursor is gone": ([*OPENED, error(20, 43, command="getMore", cursor_id=100), LATER], set()),
    "capture lost frames": ([one | {"connection_id": "lossy"} for one in [*OPENED, LATER]], set()),
}
"""Each plays on a server of its own: the commands, and the rules that must fire."""


def played(rows: list[Row], exchanges: Sequence[Row] = ()) -> list[Finding]:
    made = sources(commands=rows, gaps=[row(GAPS, connection_id="lossy")], exchanges=exchanges)
    made = replace(made, ends=commands.ends(made.tables))
    episodes: dict[str, list[Episode]] = {}
    for episode in collect_episodes(commands.command_symptoms(made.tables, SETTINGS), ClusterCatalog(), SETTINGS):
        episodes.setdefault(episode.rule, []).append(episode)
    made = replace(made, episodes=episodes)
    rules = (MongoSlowCommand, MongoCommandFailed, MongoRetryStorm, MongoCursorLeak)
    return detected(rules, made, SETTINGS)


@pytest.fixture(scope="module")
def rules() -> dict[str, set[str]]:
    """The rules that fire, by play."""
    rows = [
        one | {"server": name, "exchange_id": f"{name}/{one['exchange_id']}"}
        for name, (some, _) in PLAYS.items()
        for one in some
    ]
    fired: dict[str, set[str]] = {name: set() for name in PLAYS}
    for finding in played(rows):
        is_told = finding.severity == "info"
        fired[finding.cluster].add(f"{finding.rule} for information" if is_told else finding.rule)
    return fired


@pytest.mark.parametrize("name", PLAYS)
def test_a_rule_fires_on_its_incident_only(name: str, rules: dict[str, set[str]]):
    assert rules[name] == PLAYS[name][1]


def test_words_say_how_much_of_it() -> None:
    (slow,) = played(PLAYS["slow"][0])
    assert slow.summary == (
        "S took up to 1.0 s for find on shop.orders, usually below 1 ms: 3 slow commands of app at 10.0.0.1, from "
        "12:00:00 to 12:00:02 UTC."
    )
    (failed,) = played([update(n / 2, n in (100, 300, 450)) for n in range(500)])
    assert failed.summary.startswith(
        "3 of 500 update commands on shop.orders of app at 10.0.0.1 failed, 3 times from 12:00:50"
    )
    assert (failed.details["failed"], failed.details["run"]) == (3, 1)
    (all_of,) = played(PLAYS["fails"][0])
    assert all_of.summary.startswith("3 of 3 update commands on shop.orders")


def test_a_refused_login_is_reported_with_its_code_name() -> None:
    (found,) = played(PLAYS["a refused login"][0])
    assert found.subject == "admin/login of app"
    assert found.summary == "S refused the login of app at 10.0.0.1 once, at 12:00:01 UTC: AuthenticationFailed."
    assert found.details["area"] == "login"


def test_each_application_with_a_wrong_password_is_a_finding_of_its_own() -> None:
    rows = [
        one
        for n in range(5)
        for name in ("app", "report")
        for one in (login(n) | {"application": name}, login(n + 0.5, "saslContinue", 18) | {"application": name})
    ]
    assert sorted(one.subject for one in played(rows)) == ["admin/login of app", "admin/login of report"]


def test_two_hosts_without_a_name_are_two() -> None:
    rows = [
        login(n, code=18) | {"application": None, "client_ip": host}
        for n in range(5)
        for host in ("10.0.0.1", "10.0.0.2")
    ]
    subjects = sorted(one.subject for one in played(rows))
    assert subjects == ["admin/login of 10.0.0.1", "admin/login of 10.0.0.2"]


@pytest.mark.parametrize(
    ("code", "area", "headline"),
    [
        (16500, "rate limit", "app (10.0.0.1) exceeds the rate of requests that S allows: update on shop.orders fails"),
        (462, "rate limit", "app (10.0.0.1) exceeds the rate of requests that S allows: update on shop.orders fails"),
        (352, "too old", "The driver of app (10.0.0.1) is too old for S: update on shop.orders fails each time"),
        (101, "too old", "The driver of app (10.0.0.1) is too old for S: update on shop.orders fails each time"),
    ],
)
def test_limits_and_old_drivers_are_causes_of_their_own(code: int, area: str, headline: str) -> None:
    name = MONGODB.meaning(None, code).name
    (found,) = played([error(n, code, error_name=name) for n in range(12)])
    assert found.details["area"] == area
    (incident,) = grouped([found.row()]).incidents
    assert str(incident["headline"]).startswith(headline)


def test_a_repeated_write_that_fails_as_well_counts_once() -> None:
    taken = [write(n / 10, 1000 + n) for n in range(60)]
    failing = {"ok": False, "error_code": 189, "error_name": "PrimarySteppedDown"}
    refused = [write(10 + n + m / 2, n, **failing) for n in range(6) for m in range(2)]
    (found,) = played([*taken, *refused])
    assert (found.rule, found.details["times"]) == (RETRIES, 12)
    assert [found.details[name] for name in ("failed", "sent", "run")] == [12, 72, 12]
    assert "12 of 72 insert commands" in found.summary
    assert played([*taken, *refused[:4]]) == []


@pytest.mark.parametrize(
    ("rule", "turn"),
    [
        (SLOW, [command(n, "find", **SLOWLY) for n in range(3)]),
        (FAILED, [error(n, 9) for n in range(3)]),
        (RETRIES, [write(n + m / 2, n) for n in range(5) for m in range(2)]),
    ],
)
def test_what_comes_again_after_a_pause_is_told_by_its_last_time(rule: str, turn: list[Row]) -> None:
    again = [
        one | {"ts": one["ts"] + timedelta(hours=1), "exchange_id": f"again {one['exchange_id']}", "session_id": "s2"}
        for one in turn
    ]
    (found,) = played([*USUAL, *turn, *again])
    assert (found.rule, found.details["recurrences"]) == (rule, 1)


def test_a_commands_trouble_of_before_is_counted() -> None:
    (failed,) = played([error(1000 * turn + n, 9) for turn in range(3) for n in range(4)])
    assert (failed.details["recurrences"], failed.details["times"]) == (2, 4)


def test_advice_about_a_failure_is_that_of_its_code() -> None:
    """Of each code, on a collection of its own."""
    codes = {f"shop.c{row.code}": row.code for row in MONGODB.rows if row.code not in commands.ORDINARY}
    failing = [
        error(n / 10, code, error_name=MONGODB.meaning(None, code).name, collection=name.partition(".")[2])
        for name, code in codes.items()
        for n in range(12)
    ]
    found = {one.subject.partition("/")[0]: one for one in played(failing)}
    assert set(found) == set(codes)
    for name, code in codes.items():
        catalog = MONGODB.meaning("update", code).filled()
        assert found[name].advice == catalog.advice
        (row,) = grouped([found[name].row()]).incidents
        assert (row["immediate_action"].lower(), row["remediation"].lower()) == (
            catalog.now.lower(),
            catalog.fix.lower(),
        )


def test_advice_about_several_codes_names_each_the_most_frequent_first() -> None:
    often = [error(n, 50, error_name="MaxTimeMSExpired") for n in range(6)]
    (found,) = played([*often, *(error(n + 0.5, 13, error_name="Unauthorized") for n in range(3))])
    assert found.advice.startswith("Now: MaxTimeMSExpired: look at its plan")
    assert " Unauthorized: if the application may do it" in found.advice
    assert found.details["errors"] == ["MaxTimeMSExpired", "Unauthorized"]


def unknown_cursors(server: str = "S") -> list[Row]:
    failed = {"ok": False, "error_code": 43, "error_name": "CursorNotFound", "server": server}
    return [cursor(n, 100 + n, name="getMore", **failed) for n in range(5)]


def test_cursors_that_another_server_opened_are_told() -> None:
    opened = [cursor(n - 0.5, 100 + n, server="R") for n in range(5)]
    (found,) = played([*opened, *unknown_cursors()])
    assert found.summary.endswith(" These cursors were opened at R.")
    assert found.advice.startswith("Now: send all commands of a cursor to the server that opened it")
    (row,) = grouped([found.row()]).incidents
    assert "asks S for cursors on shop.orders that R opened: CursorNotFound" in row["headline"]


BESIDE = {"connection_id": "c1"}


def test_cursors_that_another_connection_opened_at_the_same_address_are_told() -> None:
    opened = [cursor(n - 0.5, 100 + n, **BESIDE) for n in range(7)]
    (found,) = [one for one in played([*opened, *unknown_cursors()]) if one.rule == FAILED]
    assert found.summary.endswith(" and are served on: likely more than one server has this address.")
    assert found.advice.startswith("Now: send all commands of a cursor to the server that opened it")
    (row,) = grouped([found.row()]).incidents
    assert "asks S for cursors on shop.orders that other connections to it opened, as if several" in row["headline"]


@pytest.mark.parametrize(
    "others",
    [
        [],
        [cursor(n - 0.5, 100 + n) for n in range(5)],  # at the same server, by the same connection
        [cursor(n - 0.5, 100 + n, connection_id=f"c{n}") for n in range(5)],  # by connections not seen again
        [cursor(n - 700, 100 + n, **BESIDE) for n in range(5)] + [cursor(9, 900, **BESIDE)],  # timed out by then
        [cursor(n - 0.5, 100 + n, **BESIDE) for n in range(7)] + [command(n - 0.1, "endSessions") for n in range(5)],
        [cursor(n - 0.5, 100 + n, **BESIDE) for n in range(7)]
        + [command(n - 0.1, "killCursors", cursors_killed=[100 + n]) for n in range(5)],
        [cursor(n - 0.5, 100 + n, **BESIDE) for n in range(7)]
        + [cursor(n - 0.1, 100 + n, name="getMore") for n in range(5)],  # both connections have one server
        [cursor(n - 0.5, 900 + n, server="R") for n in range(5)],  # other cursors
        [cursor(n + 0.5, 100 + n, server="R", name="killCursors") for n in range(5)],  # closed there, in vain
    ],
)
def test_a_cursor_is_blamed_on_another_server_only_if_it_was_seen_there(others: list[Row]) -> None:
    (found,) = [one for one in played([*others, *unknown_cursors()]) if one.rule == FAILED]
    assert found.advice == MONGODB.meaning("getMore", 43).advice
    assert "opened" not in found.summary


def test_a_command_that_fails_at_one_server_is_told_of_that_server() -> None:
    (found,) = played([error(n, 50, error_name="MaxTimeMSExpired") for n in range(6)])
    (row,) = grouped([found.row()]).incidents
    assert row["headline"] == "update on shop.orders of app (10.0.0.1) fails each time: MaxTimeMSExpired (at S)"


def test_cursors_that_are_closed_at_last_were_left_open_before():
    def leave(n: float, first: int) -> list[Row]:
        opened = [cursor(n + m, first + m) for m in range(12)]
        return [*opened, command(n + 90, "killCursors", cursors_killed=[first + m for m in range(12)])]

    made = sources(commands=[*leave(0, 100), *leave(200, 200), command(400, "ping")])
    (found,) = MongoCursorLeak.detect(replace(made, ends=commands.ends(made.tables)), SETTINGS)
    assert (found.state, found.details["cursors"], found.details["recurrences"]) == ("resolved", 12, 1)
    assert "lay idle until 12:04:50 UTC, when they were closed" in found.summary


def test_cursors_that_are_closed_one_after_the_other_are_none_left_open():
    rows = [
        one for n in range(40) for one in (cursor(n * 5, n), command(n * 5 + 40, "killCursors", cursors_killed=[n]))
    ]
    made = sources(commands=rows)
    assert list(MongoCursorLeak.detect(replace(made, ends=commands.ends(made.tables)), SETTINGS)) == []


def test_how_long_the_server_asks_to_wait_is_stated() -> None:
    failing = [error(n, 16500, error_name="RequestRateTooLarge") for n in range(12)]
    message = '{"ok":0.0,"code":16500,"errmsg":"Error=16500, RetryAfterMs=%d, Details=429"}'
    replies = [
        row(EXCHANGES_WITH_BODIES, exchange_id=one["exchange_id"], protocol="mongodb", response_body=message % (30 + n))
        for n, one in enumerate(failing[:3])
    ]
    (found,) = played(failing, exchanges=replies)
    assert found.summary.endswith("RequestRateTooLarge (RetryAfterMs up to 32).")
    assert found.details["retry_after_ms"] == 32
