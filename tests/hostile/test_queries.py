"""Rules ask as many queries of three clusters with one trouble each as of one: never a query for each finding."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest

from pipeline.analysis.tables import Tables
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed
from tests.hostile.clusters import clusters
from tests.hostile.judging.inputs import landed_of, recordings

CLUSTERS = 3
MOST_FRAMES = 3_000
"""Larger recordings are tried by the proofs alone."""
ONCE_MORE = 1
"""What is asked only where there is something to ask for, or only of several, may be asked once more."""
NAMES = {path.name.partition(".")[0]: path for path in recordings()}
SMALL = (
    "always_refused", "broker_gone", "changing_hands", "evicted", "hung", "processes", "refused", "share_groups",
    "stalled_lso", "stale_readers", "troubled_broker", "troubled_mongodb",
)  # fmt: skip


def asked(landed: Landed, monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], Diagnosis]:
    """How often each place of the rules asks, and what is found."""
    places: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for name in ("rows", "each", "table"):
            real = getattr(Tables, name)

            def counted(self: Tables, sql: str, *, _real: Any = real, **parameters: object) -> Any:
                frame = sys._getframe(1)
                file = frame.f_code.co_filename
                if "/analysis/rules/" in file:
                    places[f"{file.rpartition('/analysis/rules/')[2]} {frame.f_code.co_name}"] += 1
                return _real(self, sql, **parameters)

            patch.setattr(Tables, name, counted)
        found = diagnose(landed, StreamSettings())
    return places, found


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.proof) for name in sorted(NAMES) if name not in SMALL)]
)
def test_as_many_queries_are_asked_of_many_clusters_as_of_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, gaps = landed_of(NAMES[name])
    once, one = asked(Landed(frames, gaps, None), monkeypatch)
    ids = [each for each in one.tables["silver.brokers"].column("cluster").to_pylist() if each and ":" not in each]
    copies = Landed(clusters(frames, ids, CLUSTERS), clusters(gaps, ids, CLUSTERS), None)
    many, found = asked(copies, monkeypatch)
    assert not found.errors
    assert found.findings.num_rows >= one.findings.num_rows
    assert {place: times for place, times in many.items() if times > once[place] + ONCE_MORE} == {}
