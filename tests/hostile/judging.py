"""Does judging survive every body? Recorded captures, cut and mutated, through all that reads them; no exception.

    python -m tests.hostile.judging --cases 2000 --seed 1

Two levels: packets are cut (a snap length, or each packet somewhere else) and read as a capture is; and rows of
``bronze.frames`` get other bodies (tests.hostile.bodies). Of each case all is derived, judged by each rule, grouped,
shown as `top` shows it, put in words; of some a lake is written, of which the page asks all it can.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa

from decoder.protocols import protocols
from pipeline.analysis.derive import Derived, derive, findings_of
from pipeline.analysis.descriptions import ProtocolDescribers, halves
from pipeline.analysis.incidents.incidents import incidents_table, judged
from pipeline.analysis.rules.run import findings_table
from pipeline.analysis.standing.groups import groups_now
from pipeline.analysis.standing.traffic import traffic_now
from pipeline.analysis.standing.window import Window
from pipeline.arrow import arrow_array
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from pipeline.settings import StreamSettings
from pipeline.tables import EXCHANGES, FINDINGS, INCIDENTS, MONGO_COMMANDS, OFFSET_TIMELINE, STATE_EVENTS
from tests.hostile.bodies import EXTREMES, integer_fields, mutated, with_field
from tests.hostile.page_questions import ask_everything
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import pcap

SETTINGS = StreamSettings()
ROWS = 300
"""Frames of a case of rows: a part of a capture."""
PACKETS = 1_000
READ = 12_000
"""Packets that are read of a capture."""
TOGETHER = 20
"""Cases of one capture, one after the other."""
RATES = (0.01, 0.1, 0.5, 1.0)


@dataclass(slots=True)
class Tally:
    """What came of it.

    Attributes:
        sites: where exceptions were raised, with how often and the case that raised it first.
    """

    cases: int = 0
    bodies: int = 0
    exceptions: int = 0
    sites: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Count what is raised inside."""
        try:
            yield
        except Exception as raised:
            error: BaseException = raised
            frame = traceback.extract_tb(error.__traceback__)
            ours = [one for one in frame if "/pipeline/" in one.filename or "/decoder/" in one.filename] or frame
            error = error.__cause__ if isinstance(error, UserError) and error.__cause__ is not None else error
            site = f"{type(error).__name__} {ours[-1].filename.partition('/wt/')[2]}:{ours[-1].lineno} {error!s:.300}"
            self.exceptions += 1
            self.sites[site.partition(" ")[0] + " " + f"{ours[-1].filename}:{ours[-1].lineno}"] += 1
            self.first.setdefault(f"{ours[-1].filename}:{ours[-1].lineno}", f"{what}: {site}")


@lru_cache(maxsize=1)
def recordings() -> tuple[Path, ...]:
    """All recorded captures."""
    return tuple(sorted([*CAPTURES.rglob("*.pcap"), *CAPTURES.rglob("*.pcap.zst")]))


@lru_cache(maxsize=2)
def packets_of(path: Path) -> tuple[Packet, ...]:
    """The first ones of a capture."""
    return tuple(islice(read_packets(str(path)), READ))


@lru_cache(maxsize=2)
def frames_of(path: Path) -> tuple[pa.Table, pa.Table]:
    """Rows of bronze, in the order of time, and gaps."""
    frames, gaps = read(packets_of(path))
    return frames.sort_by([("ts", "ascending")]), gaps


def read(packets: Sequence[Packet]) -> tuple[pa.Table, pa.Table]:
    """Rows of bronze, and gaps, of what may be a capture."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "packets.pcap")
        file.write_bytes(pcap(packets))
        landed = read_inputs([str(file)])
    return decoded(landed.frames), landed.gaps


def cut_packets(source: Random, path: Path) -> tuple[pa.Table, pa.Table]:
    """Rows of a capture whose packets were cut."""
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
    return read(part)


def with_texts(rows: pa.Table, change: Callable[[str, str | None], str | None]) -> pa.Table:
    """Rows whose header, body and embedded messages are changed, by the names of the columns."""
    for name in ("header", "body", "embedded"):
        texts = [change(name, text) for text in rows.column(name).to_pylist()]
        rows = rows.set_column(
            rows.schema.get_field_index(name), rows.schema.field(name), arrow_array(texts, pa.string())
        )
    return rows


def part_of(source: Random, path: Path) -> tuple[pa.Table, pa.Table]:
    """Some rows of a capture."""
    frames, gaps = frames_of(path)
    rows = source.choice((ROWS, ROWS, 4 * ROWS))
    start = source.randrange(max(1, frames.num_rows - rows))
    return frames.slice(start, rows), gaps


def mutated_rows(source: Random, path: Path, tally: Tally) -> tuple[pa.Table, pa.Table]:
    """Rows of a capture with other bodies."""
    frames, gaps = part_of(source, path)
    rate = source.choice(RATES)

    def change(name: str, text: str | None) -> str | None:
        if source.random() >= (rate if name == "body" else rate / 5):
            return text
        tally.bodies += 1
        return mutated(source, text)

    return with_texts(frames, change), gaps


def extreme_rows(source: Random, path: Path, tally: Tally) -> tuple[pa.Table, pa.Table]:
    """Rows of a capture in which one field has one value everywhere, or one of some that are next to each other."""
    frames, gaps = part_of(source, path)
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


def drive(frames: pa.Table, gaps: pa.Table, what: str, tally: Tally, *, lake: bool) -> None:
    """All that reads them."""
    derived: Derived | None = None
    with tally.guarded(what):
        derived = derive(frames, gaps, SETTINGS)
    if derived is None:
        return
    _describe(derived, what, tally)
    _stand(derived, what, tally)
    tables = dict(derived.tables)
    with tally.guarded(what):
        found = findings_of(derived, SETTINGS.findings)
        judgement = judged(found, (), None, SETTINGS.findings)
        tables[FINDINGS.full_name] = findings_table(judgement.findings)
        tables[INCIDENTS.full_name] = incidents_table(judgement.incidents)
    if lake:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "lake")
            with tally.guarded(what):
                write_lake(root, tables)
            ask_everything(root, lambda: tally.guarded(what))


def _describe(derived: Derived, what: str, tally: Tally) -> None:
    describers = ProtocolDescribers()
    for row in derived.of(EXCHANGES).to_pylist():
        if row["protocol"] not in protocols():
            continue
        describer, (request, response) = describers.of(row["protocol"]), halves(row)
        with tally.guarded(what):
            describer.note(request, response)
        with tally.guarded(what):
            describer.describe(request, response)
        with tally.guarded(what):
            describer.about(request, response)
        with tally.guarded(what):
            describer.of_offset(request, response, "orders", 0, 5)
        if response is not None:
            with tally.guarded(what):
                describer.errors(response)


def _stand(derived: Derived, what: str, tally: Tally) -> None:
    """As `top` shows it."""
    exchanges, states = derived.of(EXCHANGES), derived.of(STATE_EVENTS)
    times = [one for one in exchanges.column("ts").cast(pa.int64()).to_pylist() if one is not None]
    if not times:
        return
    window = Window.of(max(times), min(times), 60_000_000)
    with tally.guarded(what):
        groups_now(derived.of(OFFSET_TIMELINE), states, window)
    with tally.guarded(what):
        traffic_now(exchanges, states, derived.of(MONGO_COMMANDS), window)


def case(number: int, seed: int, tally: Tally, *, lakes: int, among: Sequence[Path] = ()) -> None:
    """One case, always the same of a number and a seed.

    Args:
        number, seed: of the case.
        tally: where to count.
        lakes: of every so many cases a lake is written and asked.
        among: captures to choose from; none: all that are recorded.
    """
    source = Random(f"{seed}/{number}")
    path = Random(f"{seed}/{number // TOGETHER}").choice(among or recordings())
    kind = source.choice(("cut", "mutated", "mutated", "mutated", "extreme", "extreme", "extreme"))
    what = f"case {number}, {kind}, {path.name}"
    with tally.guarded(what):
        if kind == "cut":
            frames, gaps = cut_packets(source, path)
        else:
            frames, gaps = (mutated_rows if kind == "mutated" else extreme_rows)(source, path, tally)
        drive(frames, gaps, what, tally, lake=number % lakes == 0)
    tally.cases += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lakes", type=int, default=10, help="of every so many cases a lake is written and asked")
    given = parser.parse_args()
    tally = Tally()
    numbers = range(given.first, given.first + given.cases)
    for number in numbers:
        case(number, given.seed, tally, lakes=given.lakes)
        if (number + 1) % 50 == 0:
            print(
                f"{tally.cases} cases, {tally.bodies} bodies, {tally.exceptions} exceptions",
                file=sys.stderr,
                flush=True,
            )
    print(f"{tally.cases} cases, {tally.bodies} bodies changed, {tally.exceptions} exceptions")
    for site, times in tally.sites.most_common():
        print(f"{times:6} {site}\n       {tally.first[site.partition(' ')[2]]}")
    return 1 if tally.exceptions else 0


if __name__ == "__main__":
    sys.exit(main())
