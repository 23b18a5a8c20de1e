"""What is asked of all partitions at once is the same as if each were asked, and costs little where there are many."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pipeline.analysis.rules.kafka.progress import topic as topics
from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.member_history import Given, Life
from pipeline.analysis.rules.kafka.progress.rhythm import Usual, usual_us
from pipeline.analysis.rules.kafka.progress.topic import Rhythms, Topic
from pipeline.analysis.rules.kafka.progress.track import Point, Track
from tests.pipeline.analysis.rules.kafka.progress.points import SEC, SETTINGS, commit, end


def some_tracks(seed: int, number: int = 8) -> list[Track]:
    """Partitions that are written once a second, and committed by one of three members now and then."""
    chance, found = random.Random(seed), []
    for partition in range(number):
        points: list[Point] = [end(second, 10 * second) for second in range(200)]
        second = chance.uniform(0, 9)
        while second < 200:
            points.append(replace(commit(second, int(10 * second)), member_id=chance.choice("abc")))
            second += chance.choice([1, 2, 5, chance.uniform(1, 60)])
        found.append(Track.of(partition, sorted(points, key=lambda p: p.ts_us)))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_is_usual_of_more_and_more_spans(seed: int) -> None:
    chance = random.Random(seed)
    spans = [chance.choice([0, 1, 2, chance.randint(1, 1000)]) for _ in range(100)]
    usual = Usual()
    asked = [chance.randint(0, 100) for _ in range(50)]
    assert [usual.of_first(n, spans) for n in asked] == [usual_us(spans[:n]) for n in asked]


@pytest.mark.parametrize("seed", range(10))
def test_the_longest_of_what_is_usual(seed: int) -> None:
    tracks, ended = some_tracks(seed), [(30 * SEC, 40 * SEC), (90 * SEC, None)]
    rhythms, chance = Rhythms(tracks, ended), random.Random(seed)
    for us in sorted(chance.randrange(200 * SEC) for _ in range(50)):
        for ill in ([], [(us // 2, us // 2 + 9 * SEC)]):
            expected = max(usual_us(track.waits(us, [*ended, *ill])) for track in tracks)
            assert rhythms.usual(us, ill) == expected


@pytest.mark.parametrize("seed", range(10))
def test_who_commits_when_and_whether_it_is_at_work(seed: int) -> None:
    tracks, chance = some_tracks(seed), random.Random(seed)
    places = [("t", n) for n in range(8)]
    given = [
        Given(20 * n * SEC, chance.choice("abcd"), frozenset(chance.sample(places, chance.randint(0, 5))))
        for n in range(2, 8)
    ]
    life = Life([one.ts_us for one in given], (), given)
    topic = Topic("t", tracks, life)
    for _ in range(100):
        first_us = chance.randrange(200 * SEC)
        last_us, owner = first_us + chance.randrange(9 * SEC), chance.choice("abcd")
        times = {p.ts_us for t in tracks for p in t.commits if p.owner == owner and first_us < p.ts_us <= last_us}
        assert list(topic.commits_of(owner, first_us, last_us)) == sorted(times)
        committed = [t for t in tracks if any(first_us < us <= last_us for us in t.commit_times)]
        held = [t for t in committed if topic.owner_of(t.commit_at(first_us) or t.commits[0], t, first_us) == owner]
        assert topic.is_at_work(owner, first_us, last_us) == bool(times or held)


@pytest.mark.parametrize("seed", range(10))
def test_a_partition_is_of_who_was_given_it_last_and_still_holds_it(seed: int) -> None:
    chance = random.Random(seed)
    places = [("t", n) for n in range(4)]
    given = [Given(n // 2, chance.choice("abc"), frozenset(chance.sample(places, 2))) for n in range(20)]
    life = Life((), (), given)
    for us in range(-1, 11):
        holds = {one.member_id: one for one in given if one.ts_us <= us}
        for topic, number in places:
            owners = [one for one in holds.values() if (topic, number) in one.partitions]
            assert life.owner(topic, number, us) == max(owners, key=lambda one: one.ts_us, default=None)


def test_where_half_of_many_partitions_stop_none_is_asked_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counting(spans: list[int]) -> int:
        asked.append(1)
        return usual_us(spans)

    monkeypatch.setattr(topics, "usual_us", counting)
    number = 60
    partitions = {
        n: sorted(
            [
                *(end(second, 1000 * second) for second in range(0, 600, 10)),
                *(
                    replace(commit(second + n / 100, 1000 * second), member_id=f"m{n % 4}")
                    for second in range(0, 600 if n % 4 else 200, 10)
                ),
            ],
            key=lambda p: p.ts_us,
        )
        for n in range(number)
    }
    (found,) = judge(partitions, SETTINGS, 0, Life(), topic="t")
    assert found.figures["members"] == ["m0"]
    assert 0 < len(asked) <= 2 * number
