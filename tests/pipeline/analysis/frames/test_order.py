"""Frames of one connection are beside each other, some thousand at a time; none is lost, none changed."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa
import pytest

from pipeline.analysis.frames import order
from pipeline.analysis.frames.order import by_connection
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import FRAMES
from tests.paths import CAPTURES

KEY = list(FRAMES.key)


@pytest.fixture(scope="module")
def landed() -> pa.Table:
    return read_inputs([str(CAPTURES / "stuck_commit.pcap")]).frames.combine_chunks()


def keys(batches: list[pa.RecordBatch]) -> list[tuple[str, str, int]]:
    return [tuple(row.values()) for batch in batches for row in batch.select(KEY).to_pylist()]


@pytest.mark.parametrize("together", [1, 70, 1_000, 1_000_000])
def test_frames_that_came_together_are_ordered_by_connection(
    landed: pa.Table, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(order, "_ROWS", together)
    given = landed.to_batches(max_chunksize=70)
    found = list(by_connection(given))
    assert sorted(keys(found)) == sorted(keys(given))
    assert sorted(map(repr, pa.Table.from_batches(found).to_pylist())) == sorted(map(repr, landed.to_pylist()))
    share = max(together // 70, 1) * 70
    for begin in range(0, landed.num_rows, share):
        assert keys(found)[begin : begin + share] == sorted(keys(given)[begin : begin + share])


def test_what_is_large_is_neither_held_nor_copied(landed: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_BYTES", 1)
    given = landed.to_batches(max_chunksize=70)
    assert [id(batch) for batch in by_connection(given)] == [id(batch) for batch in given]
    assert list(by_connection([])) == []


def test_batches_of_any_size_are_taken(landed: pa.Table) -> None:
    chance = random.Random(7)
    cuts = [0, *sorted(chance.randrange(landed.num_rows) for _ in range(9)), landed.num_rows]
    pieces = [landed.slice(a, b - a).combine_chunks() for a, b in pairwise(cuts)]
    given = [batch for piece in pieces for batch in piece.to_batches()]
    assert keys(list(by_connection(given))) == sorted(keys(given))
