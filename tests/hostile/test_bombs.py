"""Bytes that want to become very many: every codec, in a process that may have no more memory than the limits allow."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
ALLOWED = 256 * MIB
"""Above what the process takes before: the 64 MiB of a batch twice while they are joined, and a window of zstd."""

PREAMBLE = f"""
import resource, struct, zlib, zstandard
from decoder import Codec, limits
from decoder.kafka.records.iteration import read_records
from tests.decoder.kafka.batches import batch, message, record, wrapper
from tests.decoder.kafka.compressed import lz4_frame, raw_snappy, xerial, zstd_stream
from tests.decoder.kafka.encode import response

MIB = 1024 * 1024

def deflated(blocks):
    # zeros, without holding them: gzip of `blocks` MiB
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(blocks)) + packer.flush()

def bounded():
    # from here on no more than {ALLOWED} bytes above what is in use
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + {ALLOWED}, used + {ALLOWED}))

def codes(data, **options):
    return [p.error_code for p in read_records(data, 0, len(data), **options).problems]
"""

BOMBS = {
    "gzip": "batch(attributes=1, count=1, compressed=deflated(512))",
    "zstd": "batch(attributes=4, count=1, compressed=b''.join(zstd_stream(bytes(64 * MIB)) for _ in range(9)))",
    "zstd with its size": "batch(attributes=4, count=1, compressed=zstandard.compress(bytes(100 * MIB)))",
    "lz4 blocks": "batch(attributes=3, count=1, compressed=lz4_frame(b'', end=False) + 40_000 * (lambda block: "
    "struct.pack('<I', len(block)) + block)(lz4_frame(bytes(65536))[11:-4]) + bytes(4))",
    "snappy raw": "batch(attributes=2, count=1, compressed=raw_snappy(bytes(100 * MIB)))",
    "snappy in blocks": "batch(attributes=2, count=1, compressed=xerial(bytes(MIB), MIB)[:16] + 200 * "
    "xerial(bytes(MIB), MIB)[16:])",
    "old wrapper": "message(None, deflated(512), attributes=1)",
}


def run(code: str) -> str:
    """Run a program with the preamble; a MemoryError, a crash or a kill fails the test."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_stopped_at_the_limit(name):
    assert run(f"bomb = {BOMBS[name]}\nbounded()\nprint(codes(bomb))") == "['decompression_limit']"


def test_many_small_bombs_are_one_large_one():
    """Each within the limits of a batch; together they may not become more than a frame may."""
    found = run("""
one = batch(attributes=1, count=1, compressed=deflated(7))
parts = [{"partitionIndex": at, "records": one * 10} for at in range(30)]
frame = response(1, 12, {"responses": [{"topic": "t", "partitions": parts}]})
bounded()
found = Codec().records(frame, direction="response", api_key=1, api_version=12)
print({p.error_code for part in found.partitions for p in part.problems})
print(sum(p.error_code != "decompression_limit" for part in found.partitions for p in part.problems))
""")
    codes, opened = found.splitlines()
    assert "decompression_limit" in codes
    assert 256 // 7 - 2 <= int(opened) <= 256 // 7


def test_many_wrappers_while_decoding():
    found = run("""
one = wrapper([message(b"k", bytes(7 * MIB))])
parts = [{"partitionIndex": at, "records": one * 10} for at in range(30)]
frame = response(1, 3, {"responses": [{"topic": "t", "partitions": parts}]})
bounded()
message_ = Codec().decode(frame, direction="response", api_key=1, api_version=3)
print(sum(b["recordsCount"] is not None for b in message_.record_batches), len(message_.record_batches))
""")
    assert found == "36 300"


def test_the_smallest_records_there_are():
    found = run("""
limits.MAX_RECORDS_PER_FRAME = 500_000
tiny = b"\\x0c" + bytes(6)
bomb = batch([tiny * 8 * MIB], count=8 * MIB)
bounded()
result = read_records(bomb, 0, len(bomb))
print(len(result.records), [p.error_code for p in result.problems])
""")
    assert found == "500000 ['too_many_records']"


def test_headers_without_bytes():
    found = run("""
from tests.decoder.kafka.encode import varint
content = bytes(5) + varint(15 * MIB) + bytes(30 * MIB)
bomb = batch([varint(len(content)) + content])
bounded()
print(codes(bomb, payload=True))
""")
    assert found == "['too_many_records']"
