"""The kernel's checksums equal those of well-known libraries at every length."""

from __future__ import annotations

import random
import zlib

import crc32c as library
import numpy as np
import pytest

from decoder.kafka.kernel import crc as kernel_crc

AROUND = [length + by for length in (0, 8, 256, 768, 1536, 4096) for by in (-9, -1, 0, 1, 9) if length + by >= 0]
"""Where words and parts end."""


@pytest.mark.parametrize("length", AROUND)
@pytest.mark.parametrize("start", [0, 3])
def test_checksums(length: int, start: int) -> None:
    data = random.Random(length).randbytes(start + length + 5)
    given = np.frombuffer(data, np.uint8)
    checked = data[start : start + length]
    assert kernel_crc.crc32c(given, start, start + length) == library.crc32c(checked)
    assert kernel_crc._by_tables(kernel_crc._CRC32C, given, start, start + length) == library.crc32c(checked)
    assert kernel_crc.crc32(given, start, start + length) == zlib.crc32(checked)
