"""Does ``wirelake diagnose --follow`` grow? Hours of traffic through the same gathering and judging, without the clock.

A recorded incident comes again and again, each time of other connections, with another client, group and topic, so
often that the frames come at the wanted rate of their own time. Ten seconds of it are taken at once and judged, as
:mod:`pipeline.commands.diagnose_follow` does; what is reported is counted.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.follow import FRAMES_PER_S, NAMES, RECORDING
from pipeline.commands.diagnose_follow import MOST_JUDGING_S
from pipeline.config.settings import StreamSettings
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser

EXCHANGES = 2_000_000
STEPS = 10
PIECE_US = 10_000_000


def main(exchanges: int = EXCHANGES) -> None:
    """Take this many exchanges, and print what the process keeps meanwhile."""
    following, no_gaps = StreamingDiagnoser(StreamSettings()), read_inputs([str(RECORDING)]).gaps.slice(0, 0)
    table = Table("exchanges", "hours", "kept", "findings known", "reported", "resident MiB", "CPU s", "a judgement s")
    steps, reported, begun = 0, 0, time.process_time()
    CONSOLE.print(f"\n{exchanges:,} exchanges of {FRAMES_PER_S:,} frames a second into diagnose --follow, at once …")
    for number, frames in enumerate(pieces(), 1):
        following.add(frames, no_gaps)
        begin = time.monotonic()
        reported += len(following.judge())
        following.incident_changes()
        took_s = time.monotonic() - begin
        if took_s > MOST_JUDGING_S:
            following.keep_less()
        for limit in following.limits():
            CONSOLE.print(f"  after {following.gathering.exchanges:,}: {limit}", soft_wrap=True)
        done = following.gathering.exchanges
        if done >= (steps + 1) * exchanges // STEPS:
            steps = done * STEPS // exchanges
            gc.collect()
            cells = f"{done:,}", f"{number * PIECE_US / 3.6e9:.2f}", f"{following.gathering.kept.exchanges.num_rows:,}"
            known = f"{len(following.findings):,}", f"{reported:,}", f"{resident() >> 20:,}"
            table.add_row(*cells, *known, f"{time.process_time() - begun:.0f}", f"{took_s:.2f}")
        if done >= exchanges:
            break
    CONSOLE.print(table)


def pieces() -> Iterator[pa.Table]:
    """Landed frames of ten seconds each, for ever."""
    recorded = read_inputs([str(RECORDING)]).frames.sort_by("ts_end")
    ends = recorded.column("ts_end").cast(pa.int64())
    begin_us, last_us = ends[0].as_py(), ends[-1].as_py()
    every_us = recorded.num_rows * 1_000_000 // FRAMES_PER_S
    piece = 0
    while True:
        from_us, until_us = piece * PIECE_US, (piece + 1) * PIECE_US
        first = max(0, -((last_us - begin_us - from_us) // every_us))
        some = [
            _renamed(_between(recorded, ends, begin_us + from_us - start, begin_us + until_us - start), number, start)
            for number in range(first, until_us // every_us + 1)
            for start in [number * every_us]
        ]
        yield pa.concat_tables(some).sort_by("ts_end").combine_chunks()
        piece += 1


def _between(rows: pa.Table, ends: pa.ChunkedArray, from_us: int, until_us: int) -> pa.Table:
    return rows.filter(pc.and_(pc.greater_equal(ends, from_us), pc.less(ends, until_us)))


def _renamed(rows: pa.Table, number: int, late_us: int) -> pa.Table:
    """The rows of a further copy: of other connections, its client has another address, group and topic other names."""
    changed = {
        name: pc.replace_substring_regex(rows.column(name), "^.{8}", f"{number:08x}")
        for name in ("connection_id", "exchange_id", "flow_id")
    }
    client = f"10.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    changed["client_ip"] = pa.array([client] * rows.num_rows, rows.schema.field("client_ip").type)
    frames = rows.column("frame")
    for text, pattern in NAMES.items():
        frames = pc.replace_substring(frames, text, pattern % number)
    changed["frame"] = frames
    for name in ("ts", "ts_end"):
        changed[name] = pc.add(rows.column(name).cast(pa.int64()), late_us)
    for name, values in changed.items():
        rows = rows.set_column(rows.column_names.index(name), name, values.cast(rows.schema.field(name).type))
    return rows


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
