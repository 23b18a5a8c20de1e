"""Measures how fast the records of a batch are read, beside other readers on the same batches."""

from __future__ import annotations

import random
import string
from itertools import product

from benchmarks.apart import apart
from benchmarks.candidates import CONSOLE, measure, show
from benchmarks.decode import peers
from decoder.kafka.records.batches import COMPRESSION

ROUNDS = 5
RECORDS = 20_000
PER_BATCH = (50, 5000)


def main() -> None:
    """A table for each codec. Batches are written by kafka-python."""
    try:
        from benchmarks.kafka_python import build_batch  # noqa: PLC0415  optional
    except ImportError:
        CONSOLE.print("kafka-python, which writes the batches, is not installed (uv pip install --group dev)")
        return
    candidates = apart("benchmarks.wirelake", "record_readers") + peers("record_readers")
    records = _records()
    for codec, per_batch in product(range(len(COMPRESSION)), PER_BATCH):
        name = COMPRESSION[codec]
        try:
            batches = [build_batch(codec, records[at : at + per_batch]) for at in range(0, len(records), per_batch)]
        except Exception as error:
            CONSOLE.print(f"\n{name}: {error} (uv pip install --group bench)")
            continue
        understood = [candidate.check(batches) for candidate in candidates]
        given = [[batch for batch, good in zip(batches, marks, strict=True) if good] for marks in understood]
        size = sum(map(len, batches)) / len(batches)
        title = f"{name}: {len(batches)} batches of {per_batch} records, mean {size:,.0f} bytes a batch"
        results = measure(candidates, given, ROUNDS)
        units = [per_batch * len(some) for some in given]
        CONSOLE.print()
        show(f"{title}; {ROUNDS} rounds in turn, CPU time of one core", results, len(batches), "records", units)


def _records() -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Keys and values of letters that compress a little; every second record has a header."""
    source = random.Random(7)
    letters = string.ascii_lowercase.encode()
    made: list[tuple[bytes, bytes, list[tuple[str, bytes]]]] = []
    for index in range(RECORDS):
        value = b'{"order": %d, "note": "%s"}' % (index, bytes(source.choices(letters, k=70)))
        made.append((b"key-%06d" % index, value, [("trace", source.randbytes(8))] if index % 2 else []))
    return made
