"""Do a diagnosis and the job leave equal rows, whatever of a capture they get? The campaign that counts it.

python -m tests.equality [--captures NAME …] [--seed N]

Each recording in the repository lands whole, and those of half a minute also as others would have captured them: begun
in the middle, cut short, with packets lost, seen by two agents that each lack some. ``diagnose`` derives its tables in
one process; the job derives them in its driver, in one batch and in several, and by Spark's workers. Compared are every
row of every table that describes the traffic, and the findings of ``diagnose --follow``, fed in pieces of random sizes,
with the whole's.
"""

from __future__ import annotations

import argparse
import random
import shutil
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from pipeline.streaming.job import run_stream
from pipeline.streaming.spark.session import build_session
from pipeline.tables import (
    EXCHANGES_WITH_BODIES,
    FINDINGS,
    GAP_LANDING_COLUMNS,
    LANDING_COLUMNS,
    PENDING_EXCHANGES,
    Table,
)
from tests.captures.variants import pcap_of
from tests.paths import CAPTURES
from tests.pipeline.lakes import DATA, rows

PIECES = 3
"""Landing files of the run in several batches."""
_RECORD = struct.Struct("<IIII")
_GLOBAL = 24
COMPARED = [table for table in DATA if table is not PENDING_EXCHANGES]
"""A diagnosis keeps halves that wait beside its tables, not in one."""

Cut = Callable[[list[bytes], random.Random], list[list[bytes]]]
"""From a capture's packets to those of each agent."""


def _joined_midway(packets: list[bytes], chance: random.Random) -> list[list[bytes]]:
    return [packets[chance.randrange(len(packets) // 4, len(packets) // 2) :]]


def _cut_short(packets: list[bytes], chance: random.Random) -> list[list[bytes]]:
    return [packets[: chance.randrange(len(packets) // 2, len(packets))]]


def _with_losses(packets: list[bytes], chance: random.Random) -> list[list[bytes]]:
    return [[packet for packet in packets if chance.random() > 0.01]]


def _by_two_agents(packets: list[bytes], chance: random.Random) -> list[list[bytes]]:
    return [[packet for packet in packets if chance.random() > 0.005] for _ in range(2)]


CUTS: dict[str, Cut] = {
    "whole": lambda packets, _: [packets],
    "joined midway": _joined_midway,
    "cut short": _cut_short,
    "with losses": _with_losses,
    "by two agents": _by_two_agents,
}


def packets_of(capture: Path) -> tuple[bytes, list[bytes]]:
    """The header of a pcap file (little-endian), and its packets with theirs."""
    data, at = pcap_of(capture), _GLOBAL
    found = []
    while at + _RECORD.size <= len(data):
        end = at + _RECORD.size + _RECORD.unpack_from(data, at)[2]
        found.append(data[at:end])
        at = end
    return data[:_GLOBAL], found


class Campaign:
    """Counts what was compared, and what differs."""

    def __init__(self, spark: SparkSession, seed: int) -> None:
        self._spark = spark
        self._chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []

    def run(self, capture: Path, cut: str, root: Path) -> None:
        """One capture, cut one way."""
        landing = root / "landing"
        header, packets = packets_of(capture)
        for number, some in enumerate(CUTS[cut](packets, self._chance)):
            file = root / f"{number}.pcap"
            file.write_bytes(header + b"".join(some))
            read_capture([file], landing, agent_id=f"agent-{number}")
        landed = read_inputs([str(landing)])
        settings = StreamSettings()
        diagnosis = diagnose(landed, settings)
        wanted = {table.full_name: _rows(diagnosis.tables[table.full_name]) for table in COMPARED}
        with_bodies = _rows(diagnosis.tables[EXCHANGES_WITH_BODIES.full_name])
        name = f"{_name(capture)}, {cut}"
        self.counts["captures and cuts"] += 1
        batches = StreamSettings(max_files_per_trigger=1, max_frames_files_per_trigger=1)
        runs = {
            "in one batch, here": (landing, settings),
            "in batches, here": (_in_pieces(landing, root / "pieces", self._chance), batches),
            "by workers": (landing, settings.model_copy(update={"local_row_limit": 0})),
        }
        for how, (source, chosen) in runs.items():
            lake = root / how.replace(" ", "-")
            run_stream(source, lake, once=True, spark=self._spark, settings=chosen)
            for table in COMPARED:
                self._compare(f"{name}, {how}: {table.full_name}", wanted[table.full_name], _held(lake, table))
            bodies = query(
                lake, f"SELECT {', '.join(EXCHANGES_WITH_BODIES.column_names)} FROM {EXCHANGES_WITH_BODIES.name}"
            )
            self._compare(f"{name}, {how}: {EXCHANGES_WITH_BODIES.name}", with_bodies, _rows(bodies))
        self._follow(name, landed.frames, landed.gaps, settings, wanted[FINDINGS.full_name])

    def _compare(self, what: str, wanted: list[str], found: list[str]) -> None:
        self.counts["tables"] += 1
        self.counts["rows"] += len(wanted)
        if wanted != found:
            missing, more = list(set(wanted) - set(found)), list(set(found) - set(wanted))
            self.differences.append(f"{what}: {len(missing)} missing, {len(more)} more\n- {missing[:1]}\n+ {more[:1]}")

    def _follow(self, name: str, frames: pa.Table, gaps: pa.Table, settings: StreamSettings, wanted: list[str]) -> None:
        following = StreamingDiagnoser(settings, by_kernel=False)
        in_order = frames.sort_by("ts")
        at = 0
        while at < in_order.num_rows:
            size = self._chance.randrange(1, in_order.num_rows)
            following.add(in_order.slice(at, size), gaps if at == 0 else gaps.slice(0, 0))
            at += size
            following.judge()
            self.counts["pieces followed"] += 1
        last = following.diagnosis()
        found = [] if last is None else _rows(last.findings)
        self._compare(f"{name}, followed: findings", wanted, found)


def _held(lake: Path, table: Table) -> list[str]:
    return sorted(map(repr, map(_values, rows(lake, table))))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, map(_values, table.to_pylist())))


def _values(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(row.items())


def _in_pieces(landing: Path, target: Path, chance: random.Random) -> Path:
    """The same rows in other files, cut at random places in the order of time."""
    for kind, columns in (("date=*", LANDING_COLUMNS), ("gaps", GAP_LANDING_COLUMNS)):
        files = sorted(path for path in landing.glob(f"{kind}/**/*.parquet"))
        if not files:
            continue
        names = [column.name for column in columns]
        whole = pa.concat_tables([pq.ParquetFile(file).read(names) for file in files]).sort_by("ts")
        cuts = [0, *sorted(chance.randrange(whole.num_rows + 1) for _ in range(PIECES - 1)), whole.num_rows]
        folder = target / files[0].parent.relative_to(landing)
        folder.mkdir(parents=True, exist_ok=True)
        for number, (begin, end) in enumerate(pairwise(cuts)):
            if begin < end:
                pq.write_table(whole.slice(begin, end - begin), folder / f"piece-{number}.parquet")
    return target


def _name(capture: Path) -> str:
    return capture.name.partition(".")[0]


def all_captures() -> Iterator[Path]:
    """All recordings of the repository, the long ones last."""
    yield from sorted(CAPTURES.rglob("*.pcap"))
    yield from sorted(CAPTURES.rglob("*.pcap.zst"))


def main(arguments: list[str]) -> int:
    """Run the campaign; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", nargs="*", help="names of recordings; all if none")
    parser.add_argument("--cuts", nargs="*", choices=list(CUTS), default=list(CUTS))
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    campaign = Campaign(build_session("equality"), chosen.seed)
    for capture in all_captures():
        name = _name(capture)
        if chosen.captures and name not in chosen.captures:
            continue
        for cut in chosen.cuts if capture.suffix == ".pcap" else [one for one in chosen.cuts if one == "whole"]:
            root = Path(tempfile.mkdtemp())
            try:
                campaign.run(capture, cut, root)
            finally:
                shutil.rmtree(root)
            print(f"{name}, {cut}: {dict(campaign.counts)}, {len(campaign.differences)} differences", flush=True)
    for one in campaign.differences:
        print(one)
    return int(bool(campaign.differences))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
