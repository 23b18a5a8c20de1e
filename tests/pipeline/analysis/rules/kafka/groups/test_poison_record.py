"""Rule ``poison_record``: lives that end at one record, and lives that end for other reasons."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.analysis.rules.kafka.groups import poison_lives
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from tests.pipeline.analysis.rules.kafka.group_rows import Row, committed, enters, fetched, leaves, with_steps


def found(exchanges: Sequence[Row], events: Sequence[Row], seen_s: float | None = None) -> list[Finding]:
    return poison_lives.poisoned(with_steps(seen_s, exchanges=exchanges, events=events), finding_settings())


def lives(number: int, every_s: float, *, leave: bool = False, who: str = "a") -> list[Row]:
    """Processes of one client that come one after the other, each over a connection of its own."""
    steps = []
    for n in range(number + 1):
        steps.append(enters(n * every_s, who, connection=f"{who}{n}", member=f"{who}-m{n}"))
        if leave and n < number:
            steps.append(leaves((n + 0.5) * every_s, who, connection=f"{who}{n}", member=f"{who}-m{n}"))
    return steps


def reads(number: int, every_s: float, at: int, to: int, **more: object) -> list[Row]:
    return [fetched(n * every_s + 0.1, "a", at, to, **more) for n in range(number + 1)]


STANDS = committed(-20, "z", 40)
GETS_ON = [committed(n, "b", n, partition=1) for n in range(-30, 60)]


@pytest.mark.parametrize("leave", [False, True])
def test_it_names_the_record(leave: bool) -> None:
    (finding,) = found(lives(4, 6, leave=leave), [STANDS, *GETS_ON, *reads(4, 6, 40, 60)])
    assert (finding.severity, finding.subject) == ("critical", "g/t-0")
    assert (finding.details["offset"], finding.details["last_suspect"], finding.details["lives"]) == (40, 59, 4)
    assert "--offset 40 " in finding.advice
    assert "Its other partitions get on." in finding.summary


def test_without_any_commit_it_takes_more_lives() -> None:
    assert found(lives(4, 6), reads(4, 6, 0, 60)) == []
    (finding,) = found(lives(6, 6), reads(6, 6, 0, 60))
    assert finding.severity == "warning"


def test_it_is_over_once_the_group_has_got_over_it() -> None:
    (finding,) = found(lives(4, 6), [STANDS, *GETS_ON, *reads(4, 6, 40, 60), committed(40, "a", 90)])
    assert finding.state == "resolved"
    assert "it got over it" in finding.summary


@pytest.mark.parametrize(("seen_s", "state"), [(30, "ongoing"), (600, "unknown")])
def test_that_nobody_tries_any_more_does_not_heal_it(seen_s: float, state: str) -> None:
    (finding,) = found(lives(4, 6), [STANDS, *GETS_ON, *reads(4, 6, 40, 60)], seen_s)
    assert finding.state == state
    assert ("It is unknown since 12:00:24 UTC" in finding.summary) == (state == "unknown")


SLOW = [committed(30 * n, "b", n, partition=1) for n in range(-9, 3)]


@pytest.mark.parametrize(
    ("exchanges", "events"),
    [
        # Each life commits a little more before it ends: a deploy, or one that is killed from time to time.
        (lives(4, 6), [*GETS_ON, *(row for n in range(5) for row in (
            fetched(n * 6 + 0.1, "a", n * 10, n * 10 + 20), committed(n * 6 + 5, "a", n * 10 + 10)))]),
        # A rolling deploy within one commit period of a group that commits each 30 s.
        (lives(4, 6), [STANDS, *SLOW, *reads(4, 6, 40, 60)]),
        # All had been committed.
        (lives(4, 6), [committed(-20, "z", 60), *GETS_ON, *reads(4, 6, 40, 60)]),
        # A crash loop for another reason: both partitions stand still.
        (lives(6, 6), [STANDS, committed(-30, "z", 30), committed(-25, "z", 35), committed(-20, "z", 8, partition=1),
                       *reads(6, 6, 40, 60), *reads(6, 6, 8, 20, partition=1)]),
        # The same process enters again and again: others come and go.
        ([enters(n * 6, "a", connection="one") for n in range(9)], [STANDS, *GETS_ON, *reads(9, 6, 40, 60)]),
        # Two processes of one name run side by side, and enter in turn.
        ([enters(n * 6, "a", connection=f"c{n % 2}") for n in range(9)], [STANDS, *GETS_ON, *reads(9, 6, 40, 60)]),
        # Nothing is there to read.
        (lives(6, 6), [STANDS, *GETS_ON]),
    ],
)  # fmt: skip
def test_what_is_in_order(exchanges: list[Row], events: list[Row]) -> None:
    assert found(exchanges, events) == []
