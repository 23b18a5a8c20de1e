"""What is derived from captured bytes grows with them, not with products of what one message names.

Counted are rows, which are the same each time; nothing is timed. ``python -m tests.hostile.amplify`` measures.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import pipeline
from pipeline.analysis.tables import Row, Tables
from pipeline.commands.incidents import MOST_IN_FULL, MOST_IN_SHORT
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import (
    ASSIGNMENTS,
    FETCH_SESSIONS,
    GAPS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TOPICS,
    TRANSACTIONS,
)
from tests.hostile.amplifiers import AMPLIFIERS, Amplifier, found, of_size, transactions
from tests.hostile.amplify import Tried, against, least
from tests.hostile.judging_cost import Cost, report
from tests.hostile.traffic import Landing, landed, recipes
from tests.pipeline.rows import arrow

STATED = (OFFSET_EVENTS, STATE_EVENTS, RECORD_BATCHES, TOPICS)
DERIVED = (ASSIGNMENTS, FETCH_SESSIONS, OFFSET_TIMELINE, TRANSACTIONS)
ALLOWED = 60_000
"""Rows that anybody may cause; what is beyond must be in proportion."""
OF_A_STATEMENT = 6
EXCESSIVE = {"tasks_and_topics", "subtopologies"}
"""What of 40 KB of these is not judged is counted."""


def judged(traffic: Landing) -> Diagnosis:
    return diagnose(Landed(traffic.table(), arrow(GAPS), None), StreamSettings())


@pytest.mark.parametrize("name", sorted(AMPLIFIERS))
def test_rows_and_findings_are_in_proportion_to_statements(name: str) -> None:
    traffic = of_size(AMPLIFIERS[name], 40_000)
    found = judged(traffic)
    assert not [str(error) for error in found.errors if not error.is_excess]
    assert bool(found.errors) == (name in EXCESSIVE)
    stated = sum(found.tables[table.full_name].num_rows for table in STATED)
    derived = sum(found.tables[table.full_name].num_rows for table in DERIVED)
    assert derived <= ALLOWED + OF_A_STATEMENT * stated
    assert found.findings.num_rows <= 50 + stated + len(traffic.rows)
    assert found.incidents.num_rows <= found.findings.num_rows


@pytest.mark.parametrize("seed", range(4))
def test_traffic_made_by_chance_is_judged_without_a_fault(seed: int) -> None:
    import random  # noqa: PLC0415

    for recipe, _ in zip(recipes(random.Random(seed)), range(4), strict=False):
        found = judged(landed(recipe, 15_000))
        assert not [error for error in found.errors if not error.is_excess], str(recipe)


_WITHIN = """
import resource, sys
from pipeline.analysis.rules.rule import families
from tests.hostile.test_amplify import judged
from tests.hostile.amplifiers import AMPLIFIERS
families()
traffic = AMPLIFIERS[sys.argv[1]](int(sys.argv[2]))
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]), resource.RLIM_INFINITY))
print(*{error.error for error in judged(traffic).errors})
"""


@pytest.mark.parametrize(
    ("name", "number"), [("tasks_and_topics", 1000), ("departures_and_fetches", 800), ("days_of_a_session", 1000)]
)
def test_it_fits_into_little_memory(name: str, number: int) -> None:
    """Products of these took 0.6 to 4.6 GB."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHIN, name, str(number), str(1200 * 2**20)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


@pytest.mark.parametrize(
    ("make", "small", "large"), [(transactions.stalled_partitions, 2, 90), (found.silences_of_share_groups, 40, 120)]
)
def test_no_query_is_asked_more_often_however_much_it_is(
    make: Amplifier, small: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = Tables.rows

    def rows(self: Tables, sql: str, **parameters: object) -> list[Row]:
        asked.append(sql)
        return real(self, sql, **parameters)

    monkeypatch.setattr(Tables, "rows", rows)
    counts, findings = [], []
    for number in (small, large):
        asked.clear()
        findings.append(judged(make(number)).findings.num_rows)
        counts.append(max(Counter(asked).values()))
    assert counts[0] == counts[1]
    assert findings[0]
    assert findings[1] >= findings[0]


def test_of_thousands_of_incidents_the_first_are_printed_and_the_others_counted() -> None:
    found = judged(of_size(AMPLIFIERS["clients_in_incidents"], 400_000))
    incidents = found.incidents.num_rows
    shown = MOST_IN_FULL + MOST_IN_SHORT
    assert incidents > shown
    text = report(found)
    assert f"and {incidents - shown:,} more incident" in text
    assert f"{incidents:,} incidents" in text


def test_the_worst_case_is_stated_against_the_floor() -> None:
    none = Cost(0.5, 0)
    floor, case = (Tried(None, Cost(0.5 + s, m), 1_000_000, none) for s, m in ((0.5, 50_000_000), (2.0, 200_000_000)))
    assert "it is 4.0 and 4.0 times as much" in against(floor, case)


def test_of_several_samples_the_least_time_and_the_most_memory_count() -> None:
    quick, slow, broken = Cost(1.0, 10), Cost(3.0, 30), Cost(0.5, 5, "MemoryError")
    assert least([slow, quick]) == Cost(1.0, 30)
    assert least([quick, broken, slow]) is broken


def test_no_query_searches_a_long_list_for_each_row() -> None:
    """``list_contains($names, name)`` compares each row with each name; ``name IN (SELECT unnest($names))`` hashes."""
    root = Path(pipeline.__file__).parent
    assert [
        str(path)
        for path in root.rglob("*.py")
        if re.search(r"list_contains\(\$\w+(::VARCHAR\[\])?, [a-z]", path.read_text())
    ] == []
