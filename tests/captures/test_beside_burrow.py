"""What Burrow says is told as it says it: at polls, as long as it holds, and only what is new."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pipeline.tables import OFFSET_TIMELINE
from tests.captures.beside_burrow import Alarm, Beside, Watched, beside, groups_watched, told_of_health
from tests.pipeline.rows import arrow, row

Row = dict[str, Any]
SEC = 1_000_000
T0 = datetime(2026, 11, 26, tzinfo=timezone.utc)
BEGAN_US = int(T0.timestamp() * SEC)


def at(second: int, kind: str, **values: object) -> Row:
    place = {"cluster": "k", "topic": "t", "partition": 0, "ordinal": 0, "group_id": "g"}
    when = {"ts": T0 + timedelta(seconds=second), "exchange_id": f"{kind}{second}"}
    return row(OFFSET_TIMELINE, **place | when | {"kind": kind} | values)


def test_a_group_that_falls_silent_is_ill_from_the_poll_on_that_shows_it() -> None:
    written = [at(n, "fetched", high_watermark=10 * n, group_id="") for n in range(300)]
    commits = [at(n, "committed", event_offset=10 * n, lag=0, committed_offset=10 * n) for n in range(1, 51)]
    watched = groups_watched(arrow(OFFSET_TIMELINE, [*written, *commits]))
    assert list(watched) == ["g"]
    (alarm,) = watched["g"].alarms
    # Until then one of its ten polls knows an end that the last commit has reached.
    assert (alarm.state, (alarm.first_us - BEGAN_US) // SEC, (alarm.last_us - BEGAN_US) // SEC) == ("STOP", 150, 300)
    assert [(look - BEGAN_US) // SEC for look in watched["g"].looked_us] == [180, 240, 300]
    assert watched["g"].period_s == 1
    assert told_of_health(watched, BEGAN_US) == "g STOP 150 to 300 s"


def test_without_groups_there_is_nothing_to_say() -> None:
    assert groups_watched(arrow(OFFSET_TIMELINE, [])) == {}


WATCHED = {
    "g": Watched([Alarm("REWIND", 20, 40), Alarm("STOP", 60, 90)], [30, 70, 80], 1.0),
    "h": Watched([Alarm("WARN", 50, 90)], [], None),
}


@pytest.mark.parametrize(
    ("groups", "began", "said"),
    [
        (["g"], 10, Beside("REWIND", 20, 30)),
        (["g"], 30, Beside("STOP", 60, 70)),
        (["g", "h"], 30, Beside("WARN", 50, None)),
        (["g"], 70, Beside("STOP, as before")),
        (["g"], 95, Beside("OK")),
        (["x"], 10, None),
    ],
)
def test_the_first_that_is_new_after_the_begin_counts(groups: list[str], began: int, said: Beside | None) -> None:
    assert beside(WATCHED, groups, began) == said
