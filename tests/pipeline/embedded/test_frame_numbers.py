"""Does `wirelake explain --frame N` show the exchange that an incident names? By `wirelake decode`'s own count."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.commands.messages.messages import ordered_frames
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.frame_numbers import frame_numbers
from pipeline.embedded.inputs import read_inputs
from tests.paths import CAPTURES


@pytest.mark.parametrize("name", ["stuck_commit", "version_negotiation", "mongodb/troubled_mongodb"])
def test_numbers_are_those_of_decode(name: str) -> None:
    capture = CAPTURES / f"{name}.pcap"
    counted = {
        frame.exchange_id: number
        for number, frame in enumerate(ordered_frames([str(capture)]), start=1)
        if frame.direction == "request" and frame.exchange_id is not None
    }
    found = frame_numbers(decoded(read_inputs([str(capture)]).frames), counted)
    assert len(found) > 0.9 * len(counted)
    assert {exchange_id: counted[exchange_id] for exchange_id in found} == dict(found)


def test_nothing_is_asked_of_nothing() -> None:
    assert frame_numbers(decoded(read_inputs([str(Path(CAPTURES / "stuck_commit.pcap"))]).frames.slice(0, 1)), ()) == {}
