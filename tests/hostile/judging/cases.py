"""The cases of a campaign: how rows of a recorded capture are harmed, each always the same of a number and a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa

from pipeline.analysis.fit import schema_of
from pipeline.embedded.diagnosis import decoded
from pipeline.lake.arrow import arrow_array
from pipeline.tables import EXCHANGES_WITH_BODIES, FRAMES
from tests.hostile import mutate
from tests.hostile.judging import columns, documents
from tests.hostile.judging.bodies import EXTREMES, integer_fields, mutated, with_field
from tests.hostile.judging.drive import drive, drive_exchanges, explain_frames, paired_rows
from tests.hostile.judging.inputs import frames_of, landed, landed_of, packets_of, recordings
from tests.hostile.judging.tally import Tally

ROWS = 300
"""Frames of a case of rows: a part of a capture."""
PACKETS = 1_000
TOGETHER = 5
"""Cases of one capture, one after the other."""
EXPLAINED = 40
"""Frames of a case that are explained."""
RATES = (0.01, 0.1, 0.5, 1.0)
_BYTES = (mutate.flip_bytes, mutate.truncate, mutate.insert, mutate.delete, mutate.repeat, mutate.lie_anywhere,
          mutate.zeros_at_the_end)  # fmt: skip
_HALVES = ("request_header", "request_body", "request_embedded", "response_header", "response_body",
           "response_embedded")  # fmt: skip

Rows = tuple[pa.Table, pa.Table]
"""Rows of frames or of exchanges, and gaps."""


def cut_packets(source: Random, path: Path) -> Rows:
    """Landed rows of a capture whose packets were cut: at a snap length, or each somewhere else."""
    packets = packets_of(path)
    start = source.randrange(max(1, len(packets) - PACKETS)) if source.random() < 0.5 else 0
    part = packets[start : start + PACKETS]
    if source.random() < 0.5:
        snap = source.randrange(34, 1501)
        part = tuple(one._replace(data=one.data[:snap]) for one in part)
    else:
        rate = source.choice(RATES)
        part = tuple(
            one._replace(data=one.data[: source.randrange(34, max(len(one.data), 35))])
            if source.random() < rate
            else one
            for one in part
        )
    found = landed(part)
    return found.frames, found.gaps


def with_texts(
    rows: pa.Table,
    change: Callable[[str, str | None], str | None],
    names: Sequence[str] = ("header", "body", "embedded"),
) -> pa.Table:
    """Rows whose header, body and embedded messages are changed, by the names of the columns."""
    for name in names:
        texts = [change(name, text) for text in rows.column(name).to_pylist()]
        rows = rows.set_column(
            rows.schema.get_field_index(name), rows.schema.field(name), arrow_array(texts, pa.string())
        )
    return rows


def _part(source: Random, rows: Rows) -> Rows:
    frames, gaps = rows
    size = source.choice((ROWS, ROWS, 4 * ROWS))
    start = source.randrange(max(1, frames.num_rows - size))
    return frames.slice(start, size), gaps


def mutated_rows(source: Random, path: Path, tally: Tally) -> Rows:
    """Rows of a capture with other bodies."""
    frames, gaps = _part(source, frames_of(path))
    rate = source.choice(RATES)

    def change(name: str, text: str | None) -> str | None:
        if source.random() >= (rate if name == "body" else rate / 5):
            return text
        tally.bodies += 1
        return mutated(source, text)

    return with_texts(frames, change), gaps


def extreme_rows(source: Random, path: Path, tally: Tally) -> Rows:
    """Rows of a capture in which one field has one value everywhere, or one of some that are next to each other."""
    frames, gaps = _part(source, frames_of(path))
    names = integer_fields(frames.column("body").to_pylist())
    if not names:
        return frames, gaps
    name, at = source.choice(names), source.randrange(len(EXTREMES))
    values = EXTREMES[at : at + source.choice((1, 1, 3))]
    rate = source.choice((0.1, 0.5, 1.0))

    def change(column: str, text: str | None) -> str | None:
        if column != "body" or source.random() >= rate:
            return text
        tally.bodies += 1
        return with_field(text, name, source.choice(values))

    return with_texts(frames, change), gaps


def column_rows(source: Random, path: Path, tally: Tally) -> Rows:
    """Rows of a capture whose times, sizes, ids and flags state what no agent would write."""
    frames, gaps = _part(source, frames_of(path))
    tally.bodies += frames.num_rows
    return columns.mutated(source, frames, FRAMES.columns, source.choice(RATES), is_landed=True), gaps


def exchange_rows(source: Random, path: Path, tally: Tally) -> Rows:
    """Rows of ``silver.exchanges`` of a capture, with other columns and bodies."""
    frames, gaps = _part(source, frames_of(path))
    rate = source.choice(RATES)
    rows = paired_rows(frames)
    tally.bodies += rows.num_rows
    rows = columns.mutated(source, rows, EXCHANGES_WITH_BODIES.columns, rate)
    if source.random() < 0.5:
        rows = with_texts(rows, lambda _, text: mutated(source, text) if source.random() < rate else text, _HALVES)
    return rows, gaps


def byte_rows(source: Random, path: Path, tally: Tally) -> Rows:
    """Landed rows of a capture whose frames have other bytes; of MongoDB other documents, opcodes and compression."""
    frames, gaps = _part(source, landed_of(path))
    rate, protocols = source.choice(RATES), frames.column("protocol").to_pylist()
    keys = [key for data, protocol in zip(frames.column("frame").to_pylist(), protocols, strict=True)
            if protocol == "mongodb" for key in documents.keys_of(data)]  # fmt: skip
    one = (source.choice(keys), source.choice(documents.VALUES)) if keys and source.random() < 0.4 else None
    changed: list[bytes] = []
    for data, protocol in zip(frames.column("frame").to_pylist(), protocols, strict=True):
        if source.random() >= rate:
            changed.append(data)
            continue
        tally.bodies += 1
        if protocol == "mongodb" and one is not None:
            changed.append(documents.with_key(data, *one))
        elif protocol == "mongodb" and source.random() < 0.8:
            changed.append(documents.mutated(source, data))
        else:
            changed.append(source.choice(_BYTES)(data, source, None, None)[: mutate.MOST_BYTES])  # type: ignore[arg-type]
    for name, values in (("frame", changed), ("size", [len(data) for data in changed])):
        index = frames.schema.get_field_index(name)
        frames = frames.set_column(
            index, frames.schema.field(index), arrow_array(values, frames.schema.field(index).type)
        )
    return frames, gaps


KINDS = {
    "cut": 2, "bytes": 3, "mutated": 4, "extreme": 4, "columns": 2, "exchanges": 2,
}  # fmt: skip
"""Kinds of cases, with how often each comes."""


def case(number: int, seed: int, tally: Tally, *, lakes: int, among: Sequence[Path] = ()) -> None:
    """One case, always the same of a number and a seed.

    Args:
        number, seed: of the case.
        tally: where to count.
        lakes: of every this many cases a lake is written and asked.
        among: captures to choose from; none: all that are recorded.
    """
    source = Random(f"{seed}/{number}")
    path = Random(f"{seed}/{number // TOGETHER}").choice(among or recordings())
    (kind,) = source.choices(list(KINDS), list(KINDS.values()))
    what, lake, top = f"case {number}, {kind}, {path.name}", number % lakes == 0, number % 2 == 0
    with tally.guarded(what):
        if kind == "exchanges":
            drive_exchanges(*exchange_rows(source, path, tally), what, tally, lake=lake)
        elif kind in ("cut", "bytes"):
            rows, gaps = cut_packets(source, path) if kind == "cut" else byte_rows(source, path, tally)
            some = rows.slice(source.randrange(max(1, rows.num_rows - EXPLAINED)), EXPLAINED)
            explain_frames(some, what, tally)
            drive(
                decoded(rows) if rows.num_rows else schema_of(FRAMES).empty_table(),
                gaps,
                what,
                tally,
                lake=lake,
                top=top,
            )
        else:
            make = {"mutated": mutated_rows, "extreme": extreme_rows, "columns": column_rows}[kind]
            drive(*make(source, path, tally), what, tally, lake=lake, top=top)
    tally.cases += 1
