"""Is the agent true under loss? ``python -m tests.hostile.loss --seeds 10000 --from 0``.

Captures, recorded ones and a made one (``tests.hostile.nested``), are harmed in known ways (``tests.hostile.harm``),
the agent reads them, and what it gives is compared with the frames of the unharmed capture (``tests.hostile.judge``).
Prints a table by harm. It ends with exit code 1 if of a recorded capture a frame is false, a response is paired with
the wrong request, a byte is not accounted for, or fewer than RECALL of the frames are given whose bytes are all in the
harmed capture (``--protocol mongodb``: of the recordings of MongoDB). Of the made one, whose messages are full of whole
frames of others, a stream that was joined midway cannot always be distinguished from those inside it: there
NESTED_PRECISION and NESTED_RECALL must do.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import defaultdict
from functools import cache, partial

from rich.console import Console
from rich.progress import track
from rich.table import Table

from pipeline.capture.packets.sources import read_packets
from tests.captures.mongodb.record import ALL
from tests.hostile.harm import HARMS, harm
from tests.hostile.judge import Truth, Verdict, judge
from tests.hostile.nested import nested
from tests.paths import CAPTURES as HERE

RECORDED = sorted(HERE.glob("*.pcap"))
NESTED = "nested"
CAPTURES = [*(path.stem for path in RECORDED), NESTED]
MONGODB = "mongodb"
CAPTURES_OF = {"kafka": CAPTURES, MONGODB: [f"{MONGODB}/{name}" for name in ALL]}

RECALL = 0.99
NESTED_PRECISION = 0.999
NESTED_RECALL = 0.95


@cache
def truth(name: str) -> Truth:
    """A capture by its name."""
    if name == NESTED:
        return Truth(nested(RECORDED[0]))
    return Truth(list(read_packets(str(HERE / f"{name}.pcap"))))


def run(seed: int, protocol: str = "kafka") -> tuple[int, str, str, Verdict]:
    """Harm one capture, all by the seed, and judge; (seed, row of the table, what was done, verdict)."""
    captures = CAPTURES_OF[protocol]
    name = captures[seed // len(HARMS) % len(captures)]
    whole = truth(name)
    harmed = harm(whole.packets, seed)
    row = NESTED if name == NESTED else harmed.harms[0] if len(harmed.harms) == 1 else "several"
    return seed, row, f"{name}: {harmed}", judge(whole, harmed)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign as given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.loss", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=550)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--protocol", choices=CAPTURES_OF, default="kafka", help="whose captures")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--verbose", action="store_true", help="name every frame that was missed")
    options = parser.parse_args(arguments)
    console = Console(width=None if Console().is_terminal else 170)
    by_harm: dict[str, Verdict] = defaultdict(Verdict)
    seeds = range(options.first, options.first + options.seeds)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        found = pool.imap_unordered(partial(run, protocol=options.protocol), seeds, 4)
        for seed, row, what, verdict in track(found, total=len(seeds), console=console):
            by_harm[row].add(verdict)
            for fault in verdict.faults:
                console.print(f"seed {seed} ({what}): {fault}", soft_wrap=True, markup=False)
            if options.verbose:
                for missed in verdict.missed:
                    console.print(f"seed {seed} ({what}): missed {missed}", soft_wrap=True, markup=False)
    inside = by_harm.pop(NESTED, Verdict())
    total = Verdict()
    for verdict in by_harm.values():
        total.add(verdict)
    rows = {**dict(sorted(by_harm.items())), "all recorded": total}
    console.print(_table(rows | ({"Kafka inside Kafka": inside} if inside.captures else {})))
    is_true = not total.faults and total.recovered >= RECALL * total.whole
    is_precise = inside.false <= (1 - NESTED_PRECISION) * inside.given
    is_true_inside = is_precise and inside.recovered >= NESTED_RECALL * inside.whole
    return int(not (is_true and is_true_inside))


def _table(rows: dict[str, Verdict]) -> Table:
    names = "harm", "captures", "frames whole", "recovered", "recall", "frames given", "false", "precision"
    table = Table(
        *names, "pairs kept", "bytes", "in gaps", "faults", title="The agent under loss", title_justify="left"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for number, (name, v) in enumerate(rows.items(), 3):
        table.add_row(
            name, f"{v.captures:,}", f"{v.whole:,}", f"{v.recovered:,}", _share(v.recovered, v.whole), f"{v.given:,}",
            f"{v.false:,}", _share(v.given - v.false, v.given), _share(v.paired, v.pairs), f"{v.bytes_seen:,}",
            f"{v.bytes_lost:,}", f"{len(v.faults):,}", end_section=number == len(rows),
        )  # fmt: skip
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.4%}" if whole else "-"


if __name__ == "__main__":
    raise SystemExit(main())
