from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from pipeline.lake import arrow
from pipeline.lake.arrow import arrow_array, arrow_type, taken

VALUES = {
    "int": [0, -(2**31), 2**31 - 1],
    "bigint": [0, -(2**63), 2**63 - 1],
    "double": [0.5, -1e300, float("inf")],
    "timestamp": [0, -1, 253_402_300_799_999_999],
    "string": ["", "é€😀", "a\0b"],
    "binary": [b"", b"\xff\x00", bytes(300)],
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("nulls", [0, 1, 9])
def test_an_array_is_what_pyarrow_makes_of_the_same_values(name, nulls):
    values = tuple(VALUES[name] * 5 + [None] * nulls + VALUES[name][::-1])
    made = arrow_array(values, arrow_type(name))
    made.validate(full=True)
    assert made.equals(pa.array(values, arrow_type(name)))
    assert made.null_count == nulls
    assert len(arrow_array((), arrow_type(name))) == 0


def test_a_number_that_does_not_fit_is_an_error():
    with pytest.raises(OverflowError):
        arrow_array((2**31,), pa.int32())


def test_landing_files_are_written_without_pandas(tmp_path):
    script = """
import sys
from tests.pipeline.capture.landing.test_landing import FRAME, GAP, write
from pathlib import Path
loaded = "pandas" in sys.modules
assert write(Path(sys.argv[1]), FRAME, GAP).new
assert ("pandas" in sys.modules) == loaded == False, "pandas was loaded"
"""
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True)


@pytest.mark.parametrize("most", [2**30, 40, 1])
def test_texts_are_taken_by_row_in_pieces_that_an_array_can_hold(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_MOST_AT_ONCE", most)
    texts = pa.chunked_array([["a", None, "c" * 30], [], ["d" * 20, ""]], pa.string())
    rows = pa.array([4, None, 2, 2, 0, 1, 3], pa.int64())
    found = taken(texts, rows)
    assert found.to_pylist() == ["", None, "c" * 30, "c" * 30, "a", None, "d" * 20]
    assert found.type == pa.string()
    assert (found.num_chunks > 1) == (most < 2**30)
    assert taken(texts, pa.array([], pa.int64())).to_pylist() == []
