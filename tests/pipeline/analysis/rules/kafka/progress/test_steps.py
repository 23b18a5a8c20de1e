"""Where a member commits further is looked up in steps put in order; a look at each partition gives the same."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from pipeline.analysis.rules.kafka.progress.steps import Steps
from pipeline.analysis.rules.kafka.progress.track import Point, Track


def made(source: random.Random) -> list[Track]:
    """A few partitions that two members commit by turns, back and forth."""
    return [
        Track.of(
            number,
            [
                Point(us, committed=source.randrange(5), member_id=source.choice("ab"))
                for us in sorted(source.sample(range(40), source.randrange(8)))
            ],
        )
        for number in range(source.randrange(1, 5))
    ]


def gets_on(track: Track, owner: str, first_us: int, last_us: int) -> bool:
    """Whether somebody commits further than before in this time, looked at commit by commit."""
    own = [p for p in track.between(first_us, last_us) if p.owner == owner and p.committed is not None]
    return any((after.committed or 0) > (before.committed or 0) for before, after in pairwise(own))


@pytest.mark.parametrize("seed", range(40))
def test_steps_answer_as_a_look_at_each_partition_does(seed: int) -> None:
    source = random.Random(seed)
    tracks = made(source)
    steps = Steps.of("a", tracks)
    asked = [(track, first, last) for track in tracks for first in range(0, 40, 3) for last in range(first, 41, 3)]
    assert [steps.is_beside(track.partition, first, last) for track, first, last in asked] == [
        any(gets_on(one, "a", first, last) for one in tracks if one is not track) for track, first, last in asked
    ]


def test_there_are_no_steps_without_commits() -> None:
    assert not Steps.of("a", []).is_beside(0, 0, 100)
