"""Is the work bounded that the worst attacks of the search cause? Counted in calls of functions, not in seconds."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import pytest

from decoder.field_hash import FieldHash
from pipeline.capture.runs.agent import Agent
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from tests.hostile.attack import DELIVERIES, Attack
from tests.hostile.attacks import corpus, seeds
from tests.hostile.breeding import Breeder

pytestmark = pytest.mark.slow

SIZE = 50_000
CALLS_PER_BYTE = 12
"""Calls that a byte on the wire may cause, headers of packets included. Small honest messages cause two, the worst
caused more than a hundred."""

FEW = WorkLimits(unanswered_units=20_000, all_unanswered_units=20_000, answered_units=20_000, all_answered_units=20_000)
"""What is allowed at the begin is used up soon: what is left is what holds for long."""

WORST = {
    "no protocol, tls records of one byte, and no end, without end": "each record begins a chain to the end",
    "mongodb zstd of 1,500 empty documents, both ways": "each frame may take the floor, and answers fill the bucket",
    "kafka, 20 wrappers of 2,000 in gzip": "each wrapper is counted message by message",
    "no protocol, MongoDB, a byte too long, midway, little by little": "it is looked at again with each segment",
    "large packets in fragments": "each fragment looks at all runs",
}


class _TooManyError(BaseException):
    pass


def calls(attack: Attack, most: int) -> int:
    """Calls of functions, of Python and of C, while the agent reads an attack; ``most`` at most."""
    packets = list(attack.packets(SIZE))
    agent = Agent("adversary", "lengths", CaptureStats(), FieldHash(b"a key of this deployment"), work=FEW)
    count = 0

    def on_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > most:
            sys.setprofile(None)
            raise _TooManyError

    sys.setprofile(on_call)
    try:
        for packet in packets:
            for _ in agent.take(packet):
                pass
        for _ in agent.finish():
            pass
    except _TooManyError:
        pass
    finally:
        sys.setprofile(None)
    return count


def named(name: str) -> Attack:
    return next(attack for attack in seeds() if attack.name == name)


@pytest.mark.parametrize("name", WORST)
def test_the_worst_attacks_cause_bounded_work(name):
    attack = named(name)
    size = sum(len(packet.data) for packet in attack.packets(SIZE))
    assert calls(attack, CALLS_PER_BYTE * size + 1) <= CALLS_PER_BYTE * size, WORST[name]


def test_honest_conversations_cause_less():
    attack = named("honest: plain")
    size = sum(len(packet.data) for packet in attack.packets(SIZE))
    assert 0 < calls(attack, 100 * size) <= CALLS_PER_BYTE * size


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_an_attack_is_the_same_capture_each_time(delivery):
    attack = replace(named("honest: plain"), delivery=delivery)
    packets = list(attack.packets(20_000))
    assert packets == list(attack.packets(20_000))
    assert sum(len(packet.data) for packet in packets) > 10_000


def test_children_follow_from_the_seed_and_differ_from_their_parents():
    parents = seeds()[::50]

    def children(seed: int) -> list[Attack]:
        breeder = Breeder(random.Random(seed), corpus())
        return [breeder.child(parent, other) for parent, other in zip(parents, parents[::-1], strict=True)]

    assert children(1) == children(1) != children(2)
    assert sum(child.talk != parent.talk for child, parent in zip(children(1), parents, strict=True)) > len(parents) / 4
