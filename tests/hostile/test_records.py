"""Records that are: cut off at every byte, with wrong bytes, in every format and codec, by both readers."""

from __future__ import annotations

import random
import struct

import pytest

from decoder.errors import ErrorCode
from decoder.kafka.records.batches import summarise
from decoder.kafka.records.iteration import RecordsResult
from tests.decoder.kafka.batches import LOG_APPEND_TIME, batch, message, record, wrapper
from tests.decoder.kafka.compressed import CODECS, xerial
from tests.decoder.kafka.encode import response
from tests.decoder.kafka.kernel.same_records import read_both
from tests.hostile.invariants import CODEC

CODES = {code.value for code in ErrorCode} - {ErrorCode.INTERNAL.value}
CONTENT = [
    record(b"key", b"value" * 9, 0, [(b"trace", b"x" * 20), (b"", None)]),
    record(None, b"", 1),
    record(b"\xff" * 70, None, 200),
]
OLD = [message(b"key", b"value", offset=0), message(None, b"v" * 200, offset=1), message(b"", None, offset=2)]
MUTATIONS = 1_500


def _samples() -> dict[str, bytes]:
    whole = b"".join(CONTENT)
    samples = {f"v2 {name}": batch(CONTENT, attributes=c, compressed=f(whole)) for name, (c, f) in CODECS.items()}
    samples["v2"] = batch(CONTENT, producer=(4711, 3, 2**31 - 2))
    samples["v2 xerial"] = batch(CONTENT, attributes=2 | LOG_APPEND_TIME, compressed=xerial(whole, 50))
    samples["v1"] = b"".join(OLD)
    for name in ("gzip", "snappy", "lz4"):
        codec, compress = CODECS[name]
        samples[f"v1 {name}"] = message(None, compress(b"".join(OLD)), offset=7, attributes=codec)
        samples[f"v0 {name}"] = message(None, compress(message(b"k", b"v", magic=0) * 3), magic=0, attributes=codec)
    return samples


SAMPLES = _samples()


def check(field: bytes) -> RecordsResult:
    """Both readers agree, and what they found is no more than the bytes allow."""
    found = read_both(field)
    for problem in found.problems:
        assert problem.error_code in CODES, problem
        assert 5 <= problem.batch_start <= problem.error_offset <= 5 + len(field)
        assert problem.error_detail
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_cut_off_at_every_byte_is_a_partial_batch_or_a_whole_one(name):
    data = SAMPLES[name]
    whole = len(check(data).records)
    assert whole > 0
    for cut in range(len(data)):
        found = check(data[:cut])
        assert (len(found.records) < whole, found.problems) == (True, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_records_cut_off_at_every_byte_in_a_batch_that_is_whole(name):
    """The size in the header is made to fit, so that the records themselves end too early."""
    data = SAMPLES[name]
    whole = len(check(data).records)
    for cut in range(61 if data[16] == 2 else 34, len(data)):
        shorter = data[:8] + struct.pack(">i", cut - 12) + data[12:cut]
        found = check(shorter)
        if name != "v1":  # a set of plain messages may end anywhere
            assert found.problems
            assert len(found.records) <= whole


@pytest.mark.parametrize("name", SAMPLES)
def test_one_wrong_byte(name):
    data = SAMPLES[name]
    for seed in range(MUTATIONS):
        source = random.Random(f"{name} {seed}")
        copy = bytearray(data)
        place = source.randrange(len(copy))
        copy[place] = (copy[place] + source.choice([1, 0x7F, 0x80, 0xFF, source.randrange(1, 256)])) % 256
        check(bytes(copy))


@pytest.mark.parametrize("name", ["v2 gzip", "v2 lz4", "v2 zstd", "v2 snappy", "v2"])
def test_one_wrong_byte_within_the_records(name):
    """What decompresses well and is then: the codec's own checksum does not help."""
    for seed in range(MUTATIONS):
        source = random.Random(f"within {name} {seed}")
        content = bytearray(b"".join(CONTENT))
        place = source.randrange(len(content))
        content[place] = source.randrange(256)
        codec, compress = CODECS.get(name[3:], (0, bytes))
        check(batch(CONTENT, attributes=codec, compressed=compress(bytes(content))))


@pytest.mark.slow
def test_random_bytes_as_records():
    for seed in range(2_000):
        source = random.Random(seed)
        junk = source.randbytes(source.randrange(120))
        check(junk)
        check(batch([junk], count=source.choice([0, 1, 2, 5, 2**31 - 1]), attributes=source.choice([0, 0, 0x20])))
        codec, compress = source.choice(list(CODECS.values()))
        check(batch(attributes=codec, compressed=compress(junk), count=source.choice([0, 1, 3])))
        check(message(None, CODECS["gzip"][1](junk), attributes=1, offset=source.choice([0, 5])))


@pytest.mark.parametrize("count", [2**31 - 1, -1, -(2**31)])
@pytest.mark.parametrize("codec", [0, 1])
def test_counts_allocate_nothing(count, codec):
    found = check(batch(CONTENT, count=count, attributes=codec))
    assert [problem.error_code for problem in found.problems] == ["record_count"]
    assert len(found.records) == (3 if count > 0 else 0)


def test_wrappers_in_wrappers_are_opened_once():
    nested = wrapper([message(b"k", b"v")])
    for _ in range(50):
        nested = wrapper([nested])
    assert [problem.error_code for problem in check(nested).problems] == ["nested_compression"]
    assert summarise(nested, 0, len(nested))[0]["recordsCount"] is None


def test_the_neighbours_of_a_bad_partition_are_read():
    for name, data in SAMPLES.items():
        bad = data[:-3] + b"???"
        parts = [{"partitionIndex": at, "records": part} for at, part in enumerate([bad, batch(CONTENT)])]
        frame = response(1, 12, {"responses": [{"topic": "t", "partitions": parts}]})
        found = CODEC.records(frame, direction="response", api_key=1, api_version=12)
        assert found.status == "ok", name
        assert len(found.partitions[1].records) == 3
