"""Frames with one wrong byte, ten thousand of them, always the same: every one is decoded, explained and redacted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from decoder.explain.frame import explain
from decoder.explain.paste import packet_headers, read_paste
from decoder.kafka.explain.advice import advise
from decoder.redact import redact
from tests.decoder.explain.test_paste import DUMPS
from tests.decoder.kafka.landed import landed
from tests.hostile.invariants import CODEC, decode
from tests.hostile.samples import Sample, made, recorded

COUNT = 10_000


def mutations(count: int) -> Iterator[tuple[Sample, bytes]]:
    samples = made() + recorded()
    for seed in range(count):
        source = random.Random(seed)
        sample = samples[seed % len(samples)]
        data = bytearray(sample.data)
        place = source.randrange(len(data))
        data[place] = (data[place] + source.choice([1, 0x7F, 0x80, 0xFF, source.randrange(1, 256)])) % 256
        yield sample, bytes(data)


def test_one_wrong_byte():
    statuses: Counter[str] = Counter()
    for sample, data in mutations(COUNT):
        statuses[decode(data, sample.direction, sample.api_key, sample.api_version).status] += 1
    assert sum(statuses.values()) == COUNT
    assert set(statuses) == {"ok", "partial", "malformed", "unknown_api", "unknown_version"}


def test_their_redaction_keeps_size_and_never_fails():
    for sample, data in mutations(COUNT // 4):
        cleaned = redact(landed(data, sample.direction, sample.api_key, sample.api_version))
        assert len(cleaned.frame) == len(data)
        decode(cleaned.frame, sample.direction, sample.api_key, sample.api_version, cleaned.flags)


def test_their_explanation_ends_at_the_error():
    for sample, data in mutations(COUNT // 4):
        explanation = explain(data, sample.direction, sample.api_key, sample.api_version, codec=CODEC)
        message = explanation.message
        last = explanation.lines[-1]
        is_error = last.is_error and last.depth == 0  # deeper ones are of messages inside bytes fields
        assert is_error == (message.status != "ok")
        if is_error:
            assert (last.start, last.end) == (message.error_offset, len(data))
        assert all(0 <= line.start <= line.end <= len(data) for line in explanation.lines)


@pytest.mark.slow
def test_there_is_advice_on_many_of_them():
    broken = repaired = 0
    for sample, data in mutations(COUNT):
        sort = (sample.direction, sample.api_key, sample.api_version)
        explanation = explain(data, *sort, codec=CODEC)
        if explanation.message.status not in ("partial", "malformed"):
            assert explanation.message.error_code is not None or advise(explanation, data, *sort) == []
            continue
        broken += 1
        if broken % 25 == 0:
            repaired += any("to its last byte" in text for text in advise(explanation, data, *sort))
    assert repaired > broken / 25 / 3


def test_dumps_of_them_are_read_back():
    for _, data in mutations(300):
        for dump in DUMPS:
            assert read_paste(dump(data)).data in (data, data[packet_headers(data) :])
