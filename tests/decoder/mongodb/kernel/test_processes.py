"""MongoDB's kernel in a process that checks array bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decoder.kernel.test_processes import ARE_BOUNDS_CHECKED, run

pytestmark = pytest.mark.slow

BOUNDS_CHECKED = """
from tests.decoder.mongodb.kernel.asked import Asked, compare, compare_fronts
from tests.hostile.mongodb import MongodbMutator, samples
whole = [Asked(data, direction) for direction, data in samples()]
cut = [Asked(one.data[:at], one.direction) for one in whole[::5] for at in range(min(len(one.data), 200))]
mutator = MongodbMutator(17)
given = [*whole, *cut, *(mutator.frame(number) for number in range(10_000))]
# Alone, so that what is behind a message is behind the array.
read = sum(sum(compare([one])) + sum(compare_fronts([one])) for one in given) + sum(compare(given))
print(len(given), read)
"""


@pytest.mark.proof
def test_no_access_is_out_of_bounds(tmp_path: Path) -> None:
    given, read = map(
        int, run(ARE_BOUNDS_CHECKED + BOUNDS_CHECKED, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path)).split()
    )
    print(f"{given} messages with bounds checked, {read} read")
    assert given > 20_000
    assert read > 3000
