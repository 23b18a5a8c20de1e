"""Of a client that was ill: what was found of it, what Burrow says, and what its library logged meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.captures import client_logs
from tests.captures.client_logs import BEGIN, END, PAGE, PLAYED, ill_clients, in_short, table
from tests.captures.matrix import Judged
from tests.pipeline.analysis.rules.incidents import Recording, recordings

LIBRARY = {"library": "sarama", "language": "Go", "version": "1.0"}


def event(second: float, kind: str, client_id: str = "g-1", **more: Any) -> dict[str, Any]:
    return {"ts_ms": int(second * 1000), "client_id": client_id, "kind": kind, **more}


def judged(*events: dict[str, Any], library: str = "sarama", rows: tuple[dict[str, Any], ...] = ()) -> Judged:
    clients = [{"client_id": name, **LIBRARY, "library": library} for name in ("g-1", "h-1")]
    ill = [event(10, "incident"), event(20, "healed"), event(100, "incident"), event(110, "healed")]
    log = {"capture_start_ms": 0, "capture_end_ms": 200_000, "events": [*ill, *events], "clients": clients}
    return Judged(Recording("sick_made", Path("none.pcap"), log, frozenset()), rows)


def found(rule: str, subject: str, severity: str = "critical", **details: Any) -> dict[str, Any]:
    return {"rule": rule, "subject": subject, "severity": severity, "details": details, "group_id": None, "first_us": 0}


def test_only_clients_that_were_ill_are_shown_with_what_they_logged_meanwhile() -> None:
    at = [(5, "before"), (12, "try 1"), (13, "try 22"), (34.9, "at the next poll"), (60, "between"), (105, "try 3")]
    lines = [event(second, "log", text=text) for second, text in at]
    (one,) = ill_clients(judged(*lines, event(12, "log", "h-1", text="of another")))
    assert (one.client_id, one.library, one.is_read) == ("g-1", "sarama 1.0", True)
    assert one.lines == (("try 1", 3), ("at the next poll", 1))


def test_what_was_found_is_of_the_client_or_of_its_group() -> None:
    rows = (
        found("stopped", "g/t"), found("zombie_member", "g/g-1"), found("stopped", "gg/t"),
        found("produce_refused", "t", client_id="g-1"), found("connection_churn", "x", clients=["g-1 at h"]),
        found("lag_growing", "x/t", clients=["g-11 at h"]), found("rewound", "g/t-0", severity="info"),
    )  # fmt: skip
    (one,) = ill_clients(judged(rows=rows))
    assert [(rule, subject) for rule, subject, _ in one.found] == [
        ("connection_churn", "x"), ("produce_refused", "t"), ("stopped", "g/t"), ("zombie_member", "g/g-1"),
    ]  # fmt: skip


def test_the_table_shows_three_lines_and_what_nobody_read() -> None:
    lines = [event(11, "log", text=text) for text in ("a|b", "`c`", "x" * 300, "d")]
    one = ill_clients(judged(*lines, rows=(found("stopped", "g/t"),)))[0]
    (row,) = table([one]).splitlines()[2:]
    assert "| `stopped` g/t | no group | 1 time `a¦b`<br>1 time `'c'`<br>" in row
    assert row.endswith("x…`<br>and 1 other lines |")
    assert len(row) < 400
    assert table(ill_clients(judged())).endswith("| nothing |  | nothing |")
    assert table(ill_clients(judged(library="kafka-python"))).endswith("| not read |")
    assert table(ill_clients(judged(event(1, "log_begun"), library="confluent-kafka"))).endswith("| nothing |")
    assert table([replace(one, lines=())]).endswith("| nothing |")


def test_in_short_it_counts_clients_whose_log_is_read() -> None:
    silent = ill_clients(judged(rows=(found("stopped", "g/t"),)))[0]
    loud = replace(silent, found=(("stopped", "g/t", "STOP"),), lines=(("x", 2),))
    unread = replace(loud, is_read=False)
    assert in_short([silent, loud, unread, replace(silent, found=())]) == (
        "Of 3 clients whose log is read, Wirelake finds something of 2, Burrow says something of 1, and the library "
        "logs something of 1."
    )


def test_what_is_played_is_recorded_too() -> None:
    assert {one.name for one in recordings(PLAYED)} == set(PLAYED)


def test_an_unknown_recording_is_wrong_use() -> None:
    with pytest.raises(SystemExit) as ended:
        client_logs.main(["healthy_rhythms"])
    assert ended.value.code == 2


def test_the_page_shows_each_library_whose_log_is_read() -> None:
    """At least one client of each, and of each what it logged, or that it logged nothing."""
    rows = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip().partition("\n|---|")[2].splitlines()[1:]
    libraries = {row.split("|")[1].split()[0] for row in rows}
    wanted = {"confluent-kafka", "kafka-clients", "sarama", "franz-go", "kafka-go", "kafkajs", "krafka", "spring-kafka"}
    assert libraries >= wanted
    assert all(row.count(" | ") == 4 for row in rows)
