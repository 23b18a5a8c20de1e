"""The committed captures are what their README says: complete, counted right, with the incident in them."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
from typing import Any

import pytest

from tests.captures.count import count_frames
from tests.captures.losses import lose
from tests.captures.record import HERE, INCIDENTS, INCIDENTS_DIR, PORT, SCENARIOS, main


def _truth(name: str) -> dict[str, Any]:
    folder = INCIDENTS_DIR if name in INCIDENTS else HERE
    document: dict[str, Any] = json.loads((folder / f"{name}.truth.json").read_text())
    return document


def _events(name: str, **wanted: Any) -> list[dict[str, Any]]:
    return [e for e in _truth(name)["events"] if all(e.get(k) == v for k, v in wanted.items())]


@pytest.mark.parametrize("name", SCENARIOS)
def test_counts_are_what_tshark_sees(name: str) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    counted = json.loads((HERE / f"{name}.counts.json").read_text())
    assert count_frames(HERE / f"{name}.pcap", [PORT]) == counted


@pytest.mark.parametrize("name", [*SCENARIOS, *INCIDENTS])
def test_every_event_belongs_to_a_client_and_to_the_time_of_the_capture(name: str) -> None:
    truth = _truth(name)
    known = {client["client_id"] for client in truth["clients"]}
    assert truth["events"] or name == "streams_group", "its clients log nothing"
    for event in truth["events"]:
        assert event["client_id"] in known
        assert truth["capture_start_ms"] <= event["ts_ms"] <= truth["capture_end_ms"]


def test_healthy_ends_without_lag_and_never_commits_backwards() -> None:
    for group, end in _truth("healthy")["outcome"].items():
        assert end["committed"] == end["high_watermark"], group
    assert not _events("healthy", kind="commit_error")
    last: dict[tuple[str, int], int] = {}
    for event in _events("healthy", kind="commit_ok"):
        where = (event["group"], event["partition"])
        assert event["offset"] >= last.get(where, 0)
        last[where] = event["offset"]


def test_stuck_commit_falls_back_to_one_old_offset_again_and_again() -> None:
    end = _truth("stuck_commit")["outcome"]
    stuck = end["stuck_partition"]
    old = end["committed"][str(stuck)]
    commits = [e for e in _events("stuck_commit", kind="commit_ok") if e["partition"] == stuck]
    falls = sum(1 for before, after in itertools.pairwise(commits) if after["offset"] == old < before["offset"])
    assert falls >= 10
    assert len({e["offset"] for e in commits if e["client_id"] == "billing-2"}) >= 10
    assert end["high_watermark"][str(stuck)] - old > 50


def test_stalled_lso_starves_the_read_committed_consumer_of_one_partition() -> None:
    end = _truth("stalled_lso")["outcome"]
    stalled, first = end["stalled_partition"], end["first_offset_of_transaction"]
    assert end["last_stable_offset"][str(stalled)] == first
    assert end["high_watermark"][str(stalled)] > first + 50
    assert (
        max(e["offset"] for e in _events("stalled_lso", client_id="reports", kind="consumed", partition=stalled))
        < first
    )
    assert (
        max(e["offset"] for e in _events("stalled_lso", client_id="live-view", kind="consumed", partition=stalled))
        > first + 50
    )
    assert not _events("stalled_lso", client_id="orders-batch", kind="txn_abort")


def test_an_unknown_name_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no_such_incident"]) == 2
    assert "choose from healthy" in capsys.readouterr().err


def test_all_captures_together_stay_small() -> None:
    for folder in (HERE, INCIDENTS_DIR):
        files = [p for p in folder.iterdir() if p.suffix in {".pcap", ".json"}]
        assert sum(p.stat().st_size for p in files) < 9_000_000


def _last_of(pcap: bytes) -> int:
    """Where the header of the last packet is."""
    last = at = 24
    while at < len(pcap):
        last, at = at, at + 16 + struct.unpack_from("<I", pcap, at + 8)[0]
    return last


def test_packets_are_lost_one_in_so_many_and_only_those_with_data() -> None:
    whole = (HERE / "version_negotiation.pcap").read_bytes()
    assert lose(whole, 10_000_000) == whole
    every = lose(whole, 1)
    assert 0 < len(every) < len(whole)
    assert lose(every, 1) == every
    begin, end = (struct.unpack_from("<I", whole, at)[0] for at in (24, _last_of(whole)))
    assert lose(whole, 1, [(begin, end + 1)]) == every
    assert lose(whole, 1, [(begin - 9, begin), (end + 1, end + 9)]) == whole
    early = lose(whole, 1, [(begin, begin + 1)])
    assert len(every) < len(early) < len(whole)
