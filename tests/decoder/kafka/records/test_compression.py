from __future__ import annotations

import struct

import lz4.frame
import pytest

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.records.compression import GZIP, LZ4, SNAPPY, ZSTD, Budget, decompress
from decoder.kafka.records.lz4_frame import decompress_lz4
from tests.decoder.kafka.compressed import CODECS, lz4_frame, xerial, zstd_stream

TEXT = b"wirelake " * 20_000


def fails(data: bytes, codec: int, code: ErrorCode, **options) -> str:
    with pytest.raises(DecodeError) as caught:
        decompress(data, codec, options.pop("budget", Budget()), **options)
    assert (caught.value.code, caught.value.offset) == (code, 0)
    return caught.value.detail


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("content", [b"", b"x", TEXT])
def test_every_codec(name, content):
    codec, compress = CODECS[name]
    assert decompress(compress(content), codec, Budget()) == content


@pytest.mark.parametrize("name", CODECS)
def test_cut_off_or_followed_by_something(name):
    codec, compress = CODECS[name]
    whole = compress(b"some text that is short " * 3)
    for cut in range(len(whole)):
        fails(whole[:cut], codec, ErrorCode.DECOMPRESSION_FAILED)
    fails(whole + b"\0", codec, ErrorCode.DECOMPRESSION_FAILED)


@pytest.mark.parametrize("codec", [0, 5, 6, 7, -1])
def test_unknown_codecs(codec):
    fails(b"x", codec, ErrorCode.UNKNOWN_CODEC)


@pytest.mark.parametrize("magic", [0, 1])
def test_the_old_formats_have_no_zstd(magic):
    fails(CODECS["zstd"][1](TEXT), ZSTD, ErrorCode.UNKNOWN_CODEC, magic=magic)


class TestLimits:
    @pytest.mark.parametrize("name", CODECS)
    def test_the_bytes_of_a_batch(self, name, monkeypatch):
        codec, compress = CODECS[name]
        monkeypatch.setattr(limits, "MAX_DECOMPRESSED_BATCH_BYTES", len(TEXT))
        assert len(decompress(compress(TEXT), codec, Budget())) == len(TEXT)
        fails(compress(TEXT + b"!"), codec, ErrorCode.DECOMPRESSION_LIMIT)

    @pytest.mark.parametrize("name", ["gzip", "lz4", "zstd", "zstd stream"])
    def test_the_ratio_above_the_floor(self, name, monkeypatch):
        codec, compress = CODECS[name]
        data = compress(bytes(300_000))
        monkeypatch.setattr(limits, "MAX_DECOMPRESSION_RATIO", 50)
        assert decompress(data, codec, Budget()) == bytes(300_000)
        monkeypatch.setattr(limits, "DECOMPRESSION_FLOOR", 200_000)
        fails(data, codec, ErrorCode.DECOMPRESSION_LIMIT)

    @pytest.mark.parametrize("name", CODECS)
    def test_all_batches_of_a_frame_together(self, name):
        codec, compress = CODECS[name]
        budget = Budget(size=2 * len(TEXT) + 10)
        for _ in range(2):
            decompress(compress(TEXT), codec, budget)
        assert budget.size == 10
        fails(compress(TEXT), codec, ErrorCode.DECOMPRESSION_LIMIT, budget=budget)

    def test_failures_cost_something_too(self):
        budget = Budget(size=100_000)
        broken = CODECS["gzip"][1](TEXT)[:-1]
        fails(broken, GZIP, ErrorCode.DECOMPRESSION_LIMIT, budget=budget)
        assert budget.size < 100_000


class TestSnappy:
    def test_many_blocks(self):
        assert decompress(xerial(TEXT, block=1000), SNAPPY, Budget()) == TEXT

    @pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), 0, 11])
    def test_a_block_size_that_lies(self, size):
        data = bytearray(xerial(b"short"))
        struct.pack_into(">i", data, 16, size)
        fails(bytes(data), SNAPPY, ErrorCode.DECOMPRESSION_FAILED)

    @pytest.mark.parametrize("wrap", [lambda raw: raw, lambda raw: xerial(b"")[:16] + struct.pack(">i", 6) + raw])
    def test_a_declared_length_beyond_the_limit(self, wrap):
        fails(wrap(b"\xff\xff\xff\xff\x0f\0"), SNAPPY, ErrorCode.DECOMPRESSION_LIMIT)

    def test_a_declared_length_within_the_limit_that_is_not_there(self):
        fails(b"\x80\x80\x80\x01\0a", SNAPPY, ErrorCode.DECOMPRESSION_FAILED)


class TestLz4:
    @pytest.mark.parametrize("magic", [0, 1, 2])
    def test_the_header_checksum_may_be_wrong_in_format_0_alone(self, magic):
        data = lz4_frame(TEXT, header_checksum=0x77)
        if magic == 0:
            assert decompress(data, LZ4, Budget(), magic=0) == TEXT
        else:
            assert "headerChecksum" in fails(data, LZ4, ErrorCode.DECOMPRESSION_FAILED, magic=magic)

    @pytest.mark.parametrize("of_blocks", [False, True])
    @pytest.mark.parametrize("of_content", [False, True])
    @pytest.mark.parametrize("has_size", [False, True])
    def test_frames_with_checksums_and_size(self, of_blocks, of_content, has_size):
        data = lz4.frame.compress(
            TEXT, block_linked=False, block_checksum=of_blocks, content_checksum=of_content, store_size=has_size
        )
        assert decompress(data, LZ4, Budget()) == TEXT

    @pytest.mark.parametrize("checksum", ["block", "content"])
    def test_a_wrong_checksum_is_a_failure(self, checksum):
        data = lz4.frame.compress(TEXT, block_linked=False, **{f"{checksum}_checksum": True})
        damaged = data[:-8] + bytes(4) + data[-4:] if checksum == "block" else data[:-4] + bytes(4)
        assert f"{checksum}Checksum" in fails(damaged, LZ4, ErrorCode.DECOMPRESSION_FAILED)

    @pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 200_000])
    def test_exactly_what_is_allowed_comes_out(self, size):
        data = lz4.frame.compress(bytes(size), block_linked=False)
        assert decompress_lz4(data, size) == bytes(size)
        with pytest.raises(DecodeError, match="decompression_limit"):
            decompress_lz4(data, size - 1)

    def test_what_follows_the_frame_is_a_failure(self):
        assert "ends at byte" in fails(lz4_frame(TEXT) + b"x", LZ4, ErrorCode.DECOMPRESSION_FAILED)
        assert "cut off" in fails(lz4_frame(TEXT)[:-4], LZ4, ErrorCode.DECOMPRESSION_FAILED)

    def test_blocks_that_are_not_compressed(self):
        assert decompress(lz4_frame(TEXT, raw=True), LZ4, Budget()) == TEXT

    def test_dependent_blocks_are_refused_as_by_kafka(self):
        assert "dependent" in fails(lz4_frame(TEXT, flags=0x40), LZ4, ErrorCode.DECOMPRESSION_FAILED)

    def test_a_size_that_lies(self):
        fails(lz4_frame(TEXT, size=2**63), LZ4, ErrorCode.DECOMPRESSION_LIMIT)

    def test_a_block_larger_than_its_frame_allows(self):
        data = lz4_frame(b"", end=False) + struct.pack("<I", 65_537) + bytes(65_537) + bytes(4)
        fails(data, LZ4, ErrorCode.DECOMPRESSION_FAILED)


class TestZstd:
    def test_several_frames(self):
        compress = CODECS["zstd"][1]
        assert decompress(compress(b"one") + compress(b"two"), ZSTD, Budget()) == b"onetwo"

    def test_a_content_size_that_lies(self):
        data = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**62) + b"\x01\0\0"
        fails(data, ZSTD, ErrorCode.DECOMPRESSION_LIMIT)

    def test_a_huge_window_without_content_size(self):
        one_gib, greatest = b"\x28\xb5\x2f\xfd\x00\xa0\x01\0\0", b"\x28\xb5\x2f\xfd\x00\xff\x01\0\0"
        assert "window" in fails(one_gib, ZSTD, ErrorCode.DECOMPRESSION_LIMIT)
        fails(greatest, ZSTD, ErrorCode.DECOMPRESSION_FAILED)

    def test_the_window_of_level_22(self):
        assert decompress(zstd_stream(TEXT, level=22), ZSTD, Budget()) == TEXT
