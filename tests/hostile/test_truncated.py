"""A frame that ends too early, at every byte: never ok, never an exception, and what was whole stays."""

from __future__ import annotations

import pytest

from decoder import FrameFlags
from decoder.kafka.codec.program import compile_programs
from tests.hostile.invariants import CODEC, decode
from tests.hostile.samples import Sample, made, recorded

API_VERSIONS = 18


def cut_everywhere(sample: Sample) -> None:
    sort = (sample.direction, sample.api_key, sample.api_version)
    whole = CODEC.decode(sample.data, direction=sort[0], api_key=sort[1], api_version=sort[2])
    assert whole.status == "ok"
    for size in range(len(sample.data)):
        message = decode(sample.data[:size], *sort)
        assert message.status in ("malformed", "partial"), (size, message.status)
        assert message.error_offset <= size
        read = list(message.body)
        for name in read[:-1]:
            if name != "unknownTaggedFields":
                assert message.body[name] == whole.body.get(name, message.body[name])


@pytest.mark.parametrize("sample", made(), ids=str)
def test_a_made_frame_of_every_api(sample):
    cut_everywhere(sample)


def test_the_samples_have_every_api():
    assert len({(sample.api_key, sample.direction) for sample in made()}) == 2 * len(compile_programs().api_names)


def test_recorded_frames():
    assert len(recorded()) > 80
    for sample in recorded():
        cut_everywhere(sample)


def test_a_frame_that_the_agent_knows_to_be_cut_is_truncated():
    for sample in made()[::20]:
        for size in range(len(sample.data)):
            message = decode(
                sample.data[:size], sample.direction, sample.api_key, sample.api_version, FrameFlags.TRUNCATED
            )
            assert (message.status, message.error_code) == ("truncated", "frame_truncated")
