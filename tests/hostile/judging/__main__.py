"""Does judging survive every body? Recorded captures, cut and mutated, through all that reads them; no exception.

    python -m tests.hostile.judging --cases 2000 --seed 1
    python -m tests.hostile.judging --alone

The first form harms captures: packets are cut, frames get other bytes or documents, rows other bodies, times and
columns. Of each case all is derived, judged by each rule, grouped, shown as `top` shows it, decoded, explained and put
in words; of some a lake is written, of which the page asks all it can. The second form gives each field of each message
each value, one after the other, to the readers of exchanges alone.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.hostile.judging.alone import every_field
from tests.hostile.judging.cases import case
from tests.hostile.judging.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lakes", type=int, default=10, help="of every this many cases a lake is written and asked")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU time, after which no case begins")
    parser.add_argument("--alone", action="store_true", help="each field with each value, to the readers alone")
    given = parser.parse_args()
    tally = Tally()
    if given.alone:
        every_field(tally)
    else:
        for number in range(given.first, given.first + given.cases):
            if time.process_time() > given.seconds:
                break
            known = set(tally.sites)
            case(number, given.seed, tally, lakes=given.lakes)
            for site in tally.sites.keys() - known:
                print(f"case {number}: {site}\n       {tally.first[site]}", file=sys.stderr, flush=True)
            if (number + 1) % 50 == 0:
                print(tally.lines()[0], file=sys.stderr, flush=True)
    print("\n".join(tally.lines()))
    return 1 if tally.exceptions else 0


if __name__ == "__main__":
    sys.exit(main())
