"""Copies behind address translation count once while traffic continues, and are stated in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.live_monitor import LiveMonitor
from pipeline.embedded.streaming_diagnoser import StreamingDiagnoser
from tests.captures.seen_again import seen_twice, translated
from tests.paths import CAPTURES

RECORDED = CAPTURES / "changing_hands.pcap"
LINE = "45 more connections are copies of others: the same packets seen again behind address translation."


@pytest.fixture(scope="module")
def seen_again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("again") / "seen_again.pcap"
    path.write_bytes(seen_twice(RECORDED.read_bytes(), translated(client="10.0.9.9", server="10.96.0.1")))
    return path


def test_diagnose_states_in_a_line_how_many_copies_it_leaves_out(seen_again: Path) -> None:
    done = CliRunner().invoke(app, ["diagnose", str(seen_again)])
    first, second, *_ = done.stdout.splitlines()
    assert ", 45 connections, 358 exchanges, " in first
    assert second == LINE
    assert LINE not in CliRunner().invoke(app, ["diagnose", str(RECORDED)]).stdout


def test_decode_shows_every_message_of_each_copy(seen_again: Path) -> None:
    shown = [CliRunner().invoke(app, ["decode", "--json", str(path)]).stdout for path in (RECORDED, seen_again)]
    assert len(shown[1].splitlines()) == 2 * len(shown[0].splitlines()) > 0


@pytest.mark.parametrize("most", [None, 300], ids=["all of it is kept", "the older half is dropped"])
def test_what_comes_in_pieces_counts_once(seen_again: Path, most: int | None) -> None:
    once = diagnose(read_inputs([str(RECORDED)]), StreamSettings())
    landed = read_inputs([str(seen_again)])
    frames = landed.frames.sort_by("ts_end")
    following = StreamingDiagnoser(StreamSettings(), most, by_kernel=False)
    watch = LiveMonitor(StreamSettings(), 60_000_000, by_kernel=False)
    for start in range(0, frames.num_rows, 500):
        following.add(frames.slice(start, 500), landed.gaps)
        watch.add(frames.slice(start, 500), landed.gaps)
        following.judge()
    found = following.diagnosis()
    assert found is not None
    assert {r["rule"] for r in following.findings} <= {r["rule"] for r in once.findings.to_pylist()}
    if most is None:
        assert (found.looked.connections, found.looked.exchanges) == (45, 358)
        assert found.looked.copies == found.looked.translated == 45
        watch.judge()
        now = watch.now()
        assert now is not None
        assert (now.connections, now.exchanges) == (45, 358)
    else:  # what is dropped before its copy is known counts twice
        assert 358 <= found.looked.exchanges < 358 * 1.2
