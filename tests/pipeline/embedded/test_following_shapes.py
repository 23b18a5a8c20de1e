"""What is found of the youngest rules while traffic comes is what a diagnosis of all of it finds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from tests.paths import CAPTURES
from tests.pipeline.analysis.claims.worlds import MADE

STREAM = StreamSettings()
FOUND = {
    "committed_beyond": {"offset_reset"},
    "commits_beyond": {"offset_reset"},
    "commits_nothing": {"stopped"},
    "since_refused": {"partition_dropped_from_commits"},
    "since_refused_nothing": {"stopped"},
    "silent": {"stopped"},
    "silent_since_range": {"stopped"},
    "apart": {"partition_dropped_from_commits"},
    "refused_once": {"stopped"},
    "processes": {"frozen_process", "instance_id_shared", "commit_rejected", "records_gone"},
}
"""Made captures and recordings by name, with rules that find something in each."""


def landed(name: str, folder: Path) -> Landed:
    """In the order in which an agent would land it."""
    if name in MADE:
        path = folder / f"{name}.pcap"
        path.write_bytes(MADE[name]())
    else:
        (path,) = CAPTURES.rglob(f"{name}.pcap*")
    found = read_inputs([str(path)])
    return Landed(found.frames.sort_by("ts_end"), found.gaps.sort_by("ts"), found.stats)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in FOUND])
def test_in_four_parts_it_is_the_same(name: str, tmp_path: Path) -> None:
    whole = landed(name, tmp_path)
    following = StreamingDiagnoser(STREAM, by_kernel=False)
    step = -(-whole.frames.num_rows // 4)
    for number in range(4):
        gaps = whole.gaps if number == 3 else whole.gaps.slice(0, 0)
        following.add(whole.frames.slice(number * step, step), gaps)
        following.judge()
    found = following.diagnosis()
    assert found is not None
    expected = diagnose(whole, STREAM)
    assert FOUND[name] <= {row["rule"] for row in finding_rows(expected.findings)}
    assert in_any_order(found.findings) == in_any_order(expected.findings)


def in_any_order(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))
