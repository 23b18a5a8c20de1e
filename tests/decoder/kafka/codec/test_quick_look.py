"""A look at the lengths of a frame never denies one that decodes."""

from collections import Counter

import pytest

from decoder import Codec
from decoder.kafka.codec.quick_look import may_be
from decoder.kafka.schema.table import api_versions
from tests.hostile.mutate import Mutator
from tests.hostile.samples import made_of_every_version

CODEC = Codec()
UNKNOWN = ("unknown_api", "unknown_version")


def read(frame, direction, key, version):
    return CODEC.decode(frame, direction=direction, api_key=key, api_version=version, strict=True)


def test_frames_of_every_version_may_be_what_they_are():
    for sample in made_of_every_version():
        assert read(sample.data, sample.direction, sample.api_key, sample.api_version).status == "ok"
        assert may_be(sample.data, sample.direction, sample.api_key, sample.api_version), sample


@pytest.mark.slow
def test_what_decodes_may_be_it_whatever_it_was_made_as():
    seen = Counter()
    versions = [(key, v) for key, (oldest, newest) in api_versions().items() for v in range(oldest, newest + 1)]
    samples = made_of_every_version()
    mutator = Mutator(1)
    for number in range(6000):
        frame = mutator.frame(number)
        sample = samples[number % len(samples)]
        for data, direction, key, version in (
            (frame.data, frame.direction, frame.api_key, frame.api_version),
            (frame.data, "response", *versions[number % len(versions)]),
            (sample.data, "response", *versions[(7 * number) % len(versions)]),
        ):
            if key is None or version is None:
                continue
            status = read(data, direction, key, version).status
            found = may_be(data, direction, key, version)
            is_fallback = key == 18 and may_be(data, direction, key, 0)
            assert found or is_fallback or status != "ok", (data.hex(), direction, key, version)
            assert (found is None) == (status in UNKNOWN) or is_fallback or len(data) < 8
            seen[status == "ok", found] += 1
    assert seen[True, True] > 500
    assert seen[False, False] > 5000
    assert seen[False, True] < seen[False, False] / 10  # it rejects most of the others


def test_versions_that_no_release_has_are_not_known():
    assert may_be(bytes(40), "response", 3, 99) is None
    assert may_be(b"\0\x03\0\x63" + bytes(40), "request", 3, 1) is None  # its own header has version 99
