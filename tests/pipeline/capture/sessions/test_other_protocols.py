"""Precision: nothing is taken for a protocol that it is not, wherever a capture joins and however it is cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

from decoder.protocols import protocols
from tests.pipeline.capture.other_protocols.conversation import Conversation
from tests.pipeline.capture.other_protocols.programs import PROGRAMS
from tests.pipeline.capture.other_protocols.specified import (
    SPECIFIED,
    length_and_noise,
    length_and_small_numbers,
    mongodb,
    noise,
)
from tests.pipeline.capture.reading import read
from tests.pipeline.capture.wire import Flow, pcap

SEEDS = 6

Speaker = Callable[[random.Random], Conversation]


@cache
def spoken(speaker: Speaker, seed: int) -> Conversation:
    """A conversation; of real programs the same one each time."""
    return speaker(random.Random(0 if speaker in PROGRAMS else seed))


def joined(conversation: Conversation, source: random.Random) -> Conversation:
    """As seen by someone who comes in the middle of a message: each side's first bytes are missing."""
    missing = [source.randrange(1, 200), source.randrange(1, 200)]
    rest = conversation[source.randrange(len(conversation)) :]
    seen = []
    for side, data in rest:
        cut = min(missing[side], len(data))
        missing[side] -= cut
        seen.append((side, data[cut:]))
    return seen


def flows(speaker: Speaker, seed: int) -> list[Flow]:
    """From the beginning, joined midway, with one direction only; in segments of any size."""
    source = random.Random(seed)
    whole = spoken(speaker, seed)
    cuts = [(Flow(client=("10.0.0.1", 1)).open(), whole), (Flow(client=("10.0.0.1", 2)), joined(whole, source)),
            (Flow(client=("10.0.0.1", 3)), [part for part in whole if part[0] == 0]),
            (Flow(client=("10.0.0.1", 4)), [part for part in joined(whole, source) if part[0] == 1])]  # fmt: skip
    for flow, conversation in cuts:
        for side, data in conversation:
            flow.send(side, data, source.choice((60, 700, 1460, 60_000)))
    return [flow for flow, _ in cuts]


@pytest.mark.slow
@pytest.mark.parametrize("speaker", [*PROGRAMS, *SPECIFIED], ids=lambda speaker: speaker.__name__)
def test_nothing_else_is_taken_for_one_of_ours(tmp_path, speaker):
    for seed in range(SEEDS):
        path = tmp_path / f"{seed}.pcap"
        path.write_bytes(pcap(packet for flow in flows(speaker, seed) for packet in flow.packets))
        frames, gaps, stats = read(path)
        assert not stats.connections, seed
        assert not frames
        assert not gaps
        assert stats.not_recognised.keys() <= {"not_recognised", "no_data"}


@pytest.mark.parametrize(
    "speaker", [noise, length_and_noise, length_and_small_numbers], ids=lambda speaker: speaker.__name__
)
def test_no_seed_is_lucky(speaker):
    source = random.Random(20_261_121)
    for _ in range(400):
        sent = speaker(source)
        client, server = (b"".join(data for side, data in sent if side == wanted) for wanted in (0, 1))
        cut = source.randrange(len(client))
        for first in (client, client[cut:]):
            for protocol in protocols().values():
                assert max(protocol.recognise(first, server), protocol.recognise(first, b"")) == 0


def test_mongodb_is_mongodb_however_it_is_seen(tmp_path):
    for seed in range(SEEDS):
        path = tmp_path / f"{seed}.pcap"
        path.write_bytes(pcap(packet for flow in flows(mongodb, seed) for packet in flow.packets))
        frames, _, stats = read(path)
        assert stats.connections.keys() == {"mongodb"}
        assert stats.connections["mongodb"] >= 3  # of the fourth, which one side was seen of, little may be left
        assert {frame.protocol for frame in frames} == {"mongodb"}
