"""That the kernel agrees with the plain reader is asked in test_record_iteration; here, that it does the work."""

from __future__ import annotations

import numpy as np
import pytest

from decoder.kafka.kernel.records import read_columns
from tests.decoder.kafka.batches import batch, control, message, record
from tests.decoder.kafka.compressed import CODECS

CONTENT = [record(b"k%d" % at, None if at % 3 else b"v" * at, at, [(b"h", b"x")] * (at % 2)) for at in range(100)]


@pytest.mark.parametrize("name", CODECS)
def test_good_batches_never_need_the_plain_reader(name):
    codec, compress = CODECS[name]
    data = batch(CONTENT) + batch(CONTENT, attributes=codec, compressed=compress(b"".join(CONTENT))) + control(1)
    found = read_columns(data + batch(CONTENT)[:-1], 0, len(data) + 300)
    assert (len(found), found.fallbacks, found.problems) == (201, 0, [])
    assert found.offset[:200].tolist() == [*range(100)] * 2
    assert found.buffer[[0, 99, 100, 200]].tolist() == [0, 0, 1, 0]
    assert found.bytes_at(103, "key") == b"k3"
    assert found.bytes_at(103, "value") == b"vvv"
    assert found.bytes_at(101, "value") is None
    assert found.bytes_at(101, "header_key") == b"h"


def test_what_it_does_not_read_is_read_by_the_plain_reader():
    data = batch(CONTENT) + message(b"k", b"v", offset=3) + batch(CONTENT, count=101)
    found = read_columns(data, 0, len(data))
    assert (len(found), found.fallbacks) == (201, 2)
    assert found.offset[100] == 3
    assert found.bytes_at(100, "value") == b"v"
    assert [p.error_code for p in found.problems] == ["record_count"]


def test_columns_of_nothing():
    found = read_columns(b"", 0, 0)
    assert (len(found), found.offset.dtype, found.key_size.dtype) == (0, np.int64, np.int32)
