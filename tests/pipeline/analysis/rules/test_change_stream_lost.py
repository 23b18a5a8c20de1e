"""Change streams that cannot continue, beside those that drivers resume."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.rules.mongodb.change_stream_lost import ChangeStreamLost
from pipeline.analysis.rules.mongodb.commands import command_symptoms
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import MONGO_COMMANDS
from tests.pipeline.analysis.sources import sources, tables
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
LOST, FATAL, TOKEN, OVERWRITTEN, NO_CURSOR, STEPPED_DOWN = 286, 280, 260, 136, 43, 189
Row = dict[str, Any]


def command(n: float, name: str, code: int | None = None, **more: Any) -> Row:
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:06.1f}", "server": "S", "client_ip": "10.0.0.9"}
    what = {"command": name, "database": "shop", "collection": "orders", "application": "index", "ok": code is None}
    outcome = {"error_code": code, "error_name": f"Error{code}" if code else None, "cursor_left": None if code else 7}
    return row(MONGO_COMMANDS, **when | what | outcome | more)


OPENED = [command(0, "aggregate"), command(1, "getMore"), command(2, "getMore")]
PLAYS: dict[str, tuple[list[Row], str | None]] = {
    "reads on": ([*OPENED, command(3, "getMore")], None),
    "was away for too long": ([*OPENED, command(9, "getMore", LOST)], "ongoing"),
    "tries again": ([*OPENED, command(9, "getMore", LOST), command(10, "aggregate", LOST)], "ongoing"),
    "starts over": ([*OPENED, command(9, "getMore", LOST), command(10, "aggregate")], "resolved"),
    "reads something else": (
        [*OPENED, command(9, "getMore", LOST), command(10, "aggregate", cursor_left=0)],
        "ongoing",
    ),
    "another begins": ([*OPENED, command(9, "getMore", LOST), command(10, "aggregate", application="b")], "ongoing"),
    "a token of another stream": ([command(0, "aggregate", TOKEN)], "ongoing"),
    "a token that was not found": ([command(0, "aggregate", FATAL)], "ongoing"),
    "a capped collection continued": ([command(0, "find"), command(1, "getMore", OVERWRITTEN)], "ongoing"),
    "the cursor was closed": ([*OPENED, command(3, "getMore", NO_CURSOR), command(4, "aggregate")], None),
    "the primary changed": ([*OPENED, command(3, "getMore", STEPPED_DOWN), command(4, "aggregate")], None),
}
"""What is asked, and the state of the stream that must be found lost."""


@pytest.mark.parametrize("play", PLAYS)
def test_a_stream_is_lost_if_no_driver_can_resume_it(play: str):
    rows, state = PLAYS[play]
    found = list(ChangeStreamLost.detect(sources(commands=rows), SETTINGS))
    assert [(f.subject, f.state) for f in found] == ([("shop.orders/index", state)] if state else [])
    assert {f.severity for f in found} <= {"critical" if state == "ongoing" else "warning"}


def test_it_is_told_when_it_had_read_last():
    (found,) = ChangeStreamLost.detect(sources(commands=PLAYS["starts over"][0]), SETTINGS)
    assert "last read was at 12:00:02 UTC, 7 s before" in found.summary
    assert "opened a new stream at 12:00:10 UTC" in found.summary
    assert found.details["times"] == 1


def test_what_is_reported_as_a_lost_stream_is_no_failed_command_as_well():
    rows = [command(n, "aggregate", LOST) for n in range(9)]
    assert command_symptoms(tables(commands=rows), SETTINGS) == []
    others = [command(n, "aggregate", NO_CURSOR) for n in range(3)]
    assert {one.rule for one in command_symptoms(tables(commands=others), SETTINGS)} == {"mongo_command_failed"}


def test_a_stream_that_was_begun_anew_and_read_is_lost_another_time():
    first = [command(9, "getMore", LOST), command(10, "aggregate", LOST), command(11, "aggregate")]
    rows = [*OPENED, *first, command(12, "getMore"), command(90, "getMore", LOST), command(95, "aggregate", LOST)]
    (found,) = ChangeStreamLost.detect(sources(commands=rows), SETTINGS)
    assert (found.state, found.details["times"], found.details["recurrences"]) == ("ongoing", 2, 1)
    assert "was lost at 12:01:30 UTC" in found.summary


def test_connections_of_unknown_applications_are_judged_alone():
    """Whether the other connection is the same application's is not known: its handshake was not captured."""
    nameless = {"application": None, "driver": None}
    lost = [command(1, "getMore", client="10.0.0.9:1", **nameless), command(9, "getMore", LOST, client="10.0.0.9:1",
                                                                            **nameless)]  # fmt: skip
    other = [command(8, "getMore", client="10.0.0.9:2", **nameless), command(10, "aggregate", client="10.0.0.9:2",
                                                                             **nameless)]  # fmt: skip
    (found,) = ChangeStreamLost.detect(sources(commands=[*lost, *other]), SETTINGS)
    assert (found.subject, found.state, found.severity) == ("shop.orders/10.0.0.9", "unknown", "warning")
    assert "an application without name (port 1) at 10.0.0.9" in found.summary
    assert found.details["address"] == "10.0.0.9:1"
    assert "last read was at 12:00:01 UTC" in found.summary
    assert "Whether it started over on another connection is unknown" in found.summary
