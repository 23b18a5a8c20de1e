"""Is it open, over, or not known? By what was seen of its cluster and of the broker where it showed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.rules.kafka.progress import lagging
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_TIMELINE
from tests.pipeline.analysis.sources import sources
from tests.pipeline.rows import T0, row

_S = 1_000_000
_T0_US = int(T0.timestamp() * _S)
Row = dict[str, Any]


@pytest.mark.parametrize(
    ("times", "end", "server_end", "state"),
    [
        (10, 110, 110, "ongoing"),  # seen every ten seconds, quiet for ten
        (10, 125, 125, "ongoing"),
        (10, 140, 140, "resolved"),
        (10, 140, 105, "unknown"),
        (1, 140, 140, "ongoing"),
        (1, 170, 170, "resolved"),
        (1, 170, 105, "unknown"),
    ],
)
def test_quiet_counts_in_its_own_intervals_while_somebody_listens(
    times: int, end: int, server_end: int, state: str
) -> None:
    first = 100 if times == 1 else 10
    made = replace(sources(), ends={"C": end * _S}, server_ends={"b:1": server_end * _S})
    assert made.state("C", first * _S, 100 * _S, times, server="b:1") == state


def test_a_slow_rhythm_is_not_over_after_a_minute() -> None:
    made = replace(sources(), ends={"C": 400 * _S})
    assert made.state("C", 0, 300 * _S, 6) == "ongoing"


def at(second: int, kind: str, **more: Any) -> Row:
    what = {"kind": kind, "topic": "t", "partition": 0, "cluster": "C", "ordinal": 0, "client_id": "c"}
    when = {"ts": T0 + timedelta(seconds=second), "exchange_id": f"{kind}{second:04}"}
    return row(OFFSET_TIMELINE, **what, **when, **more)


def silence(coordinator_until: int) -> list[Any]:
    """A group that commits for a minute and then no more, while ten records a second are written for two."""
    commits = [
        at(n, "committed", group_id="g", event_offset=10 * n - 5, committed_offset=10 * n - 5, member_id="m")
        for n in range(1, 60)
    ]
    ends = [at(n, "produced", group_id="", high_watermark=10 * n) for n in range(121)]
    of = {"server_ip": "10.0.0.1", "server_port": 9092, "protocol": "kafka"}
    exchanges = [
        row(EXCHANGES_WITH_BODIES, exchange_id=one["exchange_id"], request_ts=one["ts"], **of) for one in commits
    ]
    made = sources(timeline=[*commits, *ends], exchanges=exchanges)
    heard = {"10.0.0.1:9092": _T0_US + coordinator_until * _S}
    made = replace(made, ends={"C": _T0_US + 120 * _S}, server_ends=heard)
    return lagging.find(made, finding_settings())


def test_a_silence_is_open_while_its_coordinator_is_heard() -> None:
    (stopped,) = silence(120)
    assert (stopped.rule, stopped.state, stopped.severity) == ("stopped", "ongoing", "critical")


def test_where_the_coordinator_fell_silent_as_well_nobody_knows() -> None:
    (stopped,) = silence(61)
    assert (stopped.rule, stopped.state, stopped.severity) == ("stopped", "unknown", "info")
    assert stopped.details["known_until_us"] == _T0_US + 61 * _S
    assert "unknown since" in stopped.summary
