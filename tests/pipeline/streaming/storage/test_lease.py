"""A lease is held by one process at a time, whatever else is suspended, killed, or out of reach."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pipeline.streaming.storage.lease import LASTS_S, HeldError, Lease, holding


@dataclass
class Store:
    """Objects in memory, which may be out of reach."""

    objects: dict[str, bytes] = field(default_factory=dict)
    is_reached: bool = True

    def _reach(self) -> None:
        if not self.is_reached:
            raise OSError("out of reach")

    def names(self) -> list[str]:
        self._reach()
        return sorted(self.objects)

    def read(self, name: str) -> bytes | None:
        self._reach()
        return self.objects.get(name)

    def create(self, name: str, content: bytes) -> bool:
        self._reach()
        return self.objects.setdefault(name, content) is content

    def replace(self, name: str, content: bytes) -> None:
        self._reach()
        self.objects[name] = content

    def remove(self, name: str) -> None:
        self._reach()
        self.objects.pop(name, None)


@dataclass
class Time:
    """A clock that continues where somebody sleeps; what others do meanwhile is done then."""

    now: float = 1000.0
    meanwhile: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def time() -> Time:
    return Time()


def lease(store: Store, time: Time, owner: str) -> Lease:
    return Lease(store, owner, clock=time, sleep=time.sleep)


def test_the_first_has_it_at_once(store: Store, time: Time) -> None:
    one = lease(store, time, "one")
    assert not one.is_held
    one.take()
    assert one.is_held
    assert time.now == 1000


def test_another_waits_and_is_refused_while_it_is_renewed(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    time.meanwhile = one.renew
    waited: list[str] = []
    with pytest.raises(HeldError) as held:
        two.take(waited.append)
    assert (held.value.owner, waited) == ("one", ["one"])
    assert one.is_held
    assert not two.is_held


def test_an_object_that_is_read_while_it_is_written_leaves_the_holder_named(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    (name,) = store.objects
    time.meanwhile = lambda: store.replace(name, b"")  # as a file is, for a moment
    with pytest.raises(HeldError) as held:
        two.take()
    assert held.value.owner == "one"


def test_it_lapses_when_its_holder_was_killed(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    two.take()
    assert time.now >= 1000 + LASTS_S
    assert two.is_held
    assert not one.is_held
    assert len(store.objects) == 1, "what was before is removed"


def test_a_holder_that_was_suspended_finds_out(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    two.take()
    one.renew()
    assert not one.is_held
    assert two.is_held
    two.renew()
    assert two.is_held


def test_one_that_is_renewed_at_the_last_moment_is_not_taken(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    create = store.create

    def renewed_first(name: str, content: bytes) -> bool:
        store.replace("000000000001.json", b'{"owner": "one", "writes": 2}')
        return create(name, content)

    store.create = renewed_first  # type: ignore[method-assign]
    with pytest.raises(HeldError, match="one"):
        two.take()
    assert not two.is_held
    assert sorted(store.objects) == ["000000000001.json"]


def test_one_that_is_taken_while_it_is_renewed_is_lost(store: Store, time: Time) -> None:
    one = lease(store, time, "one")
    one.take()
    replace = store.replace

    def taken_first(name: str, content: bytes) -> None:
        store.objects["000000000002.json"] = b'{"owner": "two"}'
        replace(name, content)

    store.replace = taken_first  # type: ignore[method-assign]
    one.renew()
    assert not one.is_held


def test_it_says_when_it_lapses(store: Store, time: Time) -> None:
    said: list[float] = []
    one = lease(store, time, "one")
    one.lapses = said.append
    one.take()
    time.now += 10
    one.renew()
    one.release()
    two = lease(store, time, "two")
    two.take()
    one.renew()
    assert said == [LASTS_S, LASTS_S, 0, 0]


def test_a_holder_whose_clock_stood_still_finds_out(store: Store, time: Time) -> None:
    stopped = Time()
    one, two, three = lease(store, stopped, "one"), lease(store, time, "two"), lease(store, time, "three")
    one.take()
    for other in (two, three):
        other.take()
    one.renew()
    assert not one.is_held


def test_whoever_releases_it_lets_others_begin_at_once(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    one.release()
    assert not one.is_held
    two.take(lambda owner: pytest.fail(f"waits for {owner}"))
    assert two.is_held
    assert time.now == 1000


def test_who_waits_begins_when_the_holder_ends(store: Store, time: Time) -> None:
    one, two = lease(store, time, "one"), lease(store, time, "two")
    one.take()
    time.meanwhile = one.release
    two.take()
    assert two.is_held
    assert time.now < 1000 + LASTS_S


def test_of_two_who_take_a_lapsed_one_one_gets_it(store: Store, time: Time) -> None:
    one, two, three = (lease(store, time, name) for name in ("one", "two", "three"))
    one.take()

    def other_is_faster() -> None:
        if time.now >= 1000 + LASTS_S and not three.is_held:
            time.meanwhile = lambda: None
            store.create("000000000002.json", b'{"owner": "three"}')

    time.meanwhile = other_is_faster
    with pytest.raises(HeldError, match="three"):
        two.take()
    assert not two.is_held


def test_a_store_out_of_reach_costs_the_lease_after_its_time(store: Store, time: Time) -> None:
    one = lease(store, time, "one")
    one.take()
    store.is_reached = False
    with pytest.raises(OSError, match="out of reach"):
        one.renew()
    assert one.is_held
    time.now += LASTS_S
    assert not one.is_held
    store.is_reached = True
    one.renew()
    assert not one.is_held, "another may have had it meanwhile"


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"owner": 7}', b"{" * 10_000])
def test_what_others_put_there_is_waited_for_like_a_lease(store: Store, time: Time, content: bytes) -> None:
    store.objects |= {"000000000041.json": content, "notes.txt": b"", "²³.json": b""}
    one = lease(store, time, "one")
    one.take()
    assert one.is_held
    assert time.now >= 1000 + LASTS_S
    assert "000000000042.json" in store.objects


@pytest.mark.parametrize("seed", range(50))
def test_never_do_two_hold_it(seed: int) -> None:
    """Processes that begin, are suspended, continue, end and are killed at random, and a store that comes and goes."""
    chance, store, time = random.Random(seed), Store(), Time()
    alive: list[Lease] = []
    had = 0
    for _ in range(300):
        time.now += chance.choice((0.1, 1, 5, 20, 70))
        store.is_reached = chance.random() > 0.1
        what, one = chance.random(), chance.choice(alive) if alive else None
        try:
            if one is None or what < 0.3:
                alive.append(lease(store, time, f"{len(alive)}"))
                time.meanwhile = lambda: [other.renew() for other in alive[:-1] if chance.random() < 0.5]  # type: ignore[assignment, return-value]
                alive[-1].take()
                had += 1
            elif what < 0.8:
                one.renew()
            elif what < 0.9:
                one.release()
            else:
                alive.remove(one)
        except (HeldError, OSError):
            pass
        time.meanwhile = lambda: None
        assert sum(other.is_held for other in alive) <= 1
    assert had > 10


def test_a_thread_renews_it_and_says_when_it_is_lost(store: Store) -> None:
    one = Lease(store, "one", lasts_s=0.4)
    lost: list[bool] = []
    with holding(one, lost=lambda: lost.append(True)):
        one.sleep(1.0)
        assert one.is_held, "it was renewed meanwhile"
        store.is_reached = False
        one.sleep(1.0)
        assert not one.is_held
    assert lost == [True]
    store.is_reached = True
    with holding(Lease(store, "two", lasts_s=0.4)):
        pass
    with holding(Lease(store, "three", lasts_s=60.0)):
        pass  # the one before has released it: else this would take a minute
