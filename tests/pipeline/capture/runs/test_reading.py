"""Files that are given together: which are pieces of one capture, and what of it may not change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError
from pipeline.capture.runs.reading import read_capture
from tests.paths import CAPTURES
from tests.pipeline.capture.landing.test_landing import everything
from tests.pipeline.capture.reading import LARGE, SMALL, packets_of
from tests.pipeline.capture.replay import landed
from tests.pipeline.capture.runs.test_follow import cut, sorted_rows
from tests.pipeline.capture.wire import Flow, pcap, request, response


def rows(landing: Path, *paths: Path, **options) -> list[dict]:
    read_capture(paths, landing, **options)
    return sorted_rows(landed(landing))


def write(directory: Path, pieces: list) -> list[Path]:
    paths = [directory / f"x.pcap{number}" for number in range(len(pieces))]
    for path, packets in zip(paths, pieces, strict=True):
        path.write_bytes(pcap(packets))
    return paths


def test_the_pieces_of_a_capture_give_what_it_gives_whole(tmp_path):
    paths = write(tmp_path, cut(packets_of(SMALL), 7))
    whole = rows(tmp_path / "whole", SMALL)
    assert rows(tmp_path / "pieces", *reversed(paths)) == whole
    assert rows(tmp_path / "directory", tmp_path) == whole


def test_connections_within_one_piece_are_the_same_when_it_is_read_alone(tmp_path):
    first = Flow().open().send(0, request(1)).send(1, response(1)).close()
    second = Flow(client=("10.0.0.1", 40001), ts=first.ts).open().send(0, request(2)).send(1, response(2)).close()
    paths = write(tmp_path, [first.packets, second.packets])
    alone = sorted_rows([row for n, path in enumerate(paths) for row in rows(tmp_path / f"alone{n}", path)])
    assert rows(tmp_path / "together", *paths) == alone
    read_capture(paths[:1], tmp_path / "later")
    again = read_capture(paths, tmp_path / "later")
    assert (len(again.files), len(again.files_present)) == (2, 2)  # frames, and the connection's row


def test_captures_of_the_same_time_stand_for_themselves(tmp_path):
    """The same connections seen on two machines: neither completes the other."""
    packets = packets_of(SMALL)
    paths = write(tmp_path, [packets, packets[5:]])
    stats = read_capture(paths, tmp_path / "landing")
    assert stats.packets == 2 * len(packets) - 5
    assert stats.connections["kafka"] == 2 * read_capture([SMALL], tmp_path / "one").connections["kafka"]


def test_a_piece_that_cannot_be_read_costs_no_other(tmp_path):
    paths = write(tmp_path, cut(packets_of(LARGE), 3))
    paths[1].write_bytes(paths[1].read_bytes()[:-7])
    errors: list[CaptureError] = []
    stats = read_capture(paths, tmp_path / "landing", on_error=errors.append)
    assert [(type(e), e.path) for e in errors] == [(DamagedCaptureError, str(paths[1]))]
    assert stats.packets == sum(len(p) for p in cut(packets_of(LARGE), 3)[::2])
    with pytest.raises(DamagedCaptureError):
        read_capture(paths, tmp_path / "strict")
    assert everything(tmp_path / "strict") == []


@pytest.mark.slow
def test_a_damaged_piece_that_is_allowed_is_a_gap(tmp_path):
    paths = write(tmp_path, cut(packets_of(LARGE), 3))
    paths[1].write_bytes(paths[1].read_bytes()[: paths[1].stat().st_size // 2])
    stats = read_capture(paths, tmp_path / "landing", allow_truncated=True)
    assert stats.gaps > 0
    whole = read_capture([LARGE], tmp_path / "whole")
    assert stats.connections == whole.connections


@pytest.mark.slow
def test_the_recorded_captures_together_are_what_each_is_alone(tmp_path):
    """They were recorded one after the other on the same ports: no connection of one continues in the next."""
    counts = [json.loads(path.read_text()) for path in CAPTURES.glob("*.counts.json")]
    stats = read_capture([CAPTURES], tmp_path / "landing").as_dict()
    for kind in ("request", "response"):
        assert sum(stats[f"{kind}s"].values()) == sum(sum(c[kind].values()) for c in counts)
