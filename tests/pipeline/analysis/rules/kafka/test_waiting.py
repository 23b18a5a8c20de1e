"""Requests behind long polls of their own connection: captures written byte by byte, judged as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import API_LATENCY, EXCHANGES_WITH_BODIES
from tests.decoder.kafka import encode
from tests.pipeline.capture.wire import T0, Flow, prefixed

FETCH, FIND_COORDINATOR = 1, 10
POLL_US = 2_000_000
ROUNDS, BEHIND = 40, 6
_BODIES: dict[int, tuple[int, dict[str, Any], dict[str, Any]]] = {
    FETCH: (11, {"maxWaitMs": POLL_US // 1000, "replicaId": -1, "sessionEpoch": -1}, {}),
    FIND_COORDINATOR: (2, {"key": "g"}, {"nodeId": 1, "host": "b", "port": 9092}),
}


def _asked(number: int, api: int) -> bytes:
    version, body, _ = _BODIES[api]
    return prefixed(encode.request(api, version, body, client_id="app", correlation_id=number))


def _answered(number: int, api: int) -> bytes:
    version, _, body = _BODIES[api]
    return prefixed(encode.response(api, version, body, correlation_id=number))


def _at(flow: Flow, us: int, side: int, data: bytes) -> None:
    flow.ts = max(us, flow.ts)
    flow.send(side, data)


def _polling(begin_us: int, taken_us: int = 500) -> Flow:
    """Each round a quick FindCoordinator, then a Fetch that polls; in the last ones a FindCoordinator right behind it.

    Args:
        begin_us: µs since the epoch.
        taken_us: what the broker takes for the FindCoordinator behind the Fetch, once its turn has come.
    """
    flow = Flow(ts=begin_us).open()
    number, now = 0, begin_us + 10_000
    for left in reversed(range(ROUNDS)):
        _at(flow, now, 0, _asked(number, FIND_COORDINATOR))
        _at(flow, now + 600, 1, _answered(number, FIND_COORDINATOR))
        _at(flow, now + 10_000, 0, _asked(number + 1, FETCH))
        if left < BEHIND:
            _at(flow, now + 20_000, 0, _asked(number + 2, FIND_COORDINATOR))
        _at(flow, now + 10_000 + POLL_US, 1, _answered(number + 1, FETCH))
        if left < BEHIND:
            _at(flow, now + 10_100 + POLL_US + taken_us, 1, _answered(number + 2, FIND_COORDINATOR))
        number, now = number + 3, now + POLL_US + taken_us + 100_000
    return flow


def _pipelined(begin_us: int) -> Flow:
    """Five requests at once, of which each takes the broker 300 ms, after the one before it."""
    flow = Flow(ts=begin_us).open()
    number, now = 0, begin_us + 10_000
    for _ in range(ROUNDS):
        for place in range(5):
            _at(flow, now + place * 100, 0, _asked(number + place, FIND_COORDINATOR))
        for place in range(5):
            _at(flow, now + 1_000 + 300_000 * (place + 1), 1, _answered(number + place, FIND_COORDINATOR))
        number, now = number + 5, now + 2_000_000
    return flow


def _judged(folder: Path, flow: Flow) -> Diagnosis:
    return diagnose(read_inputs([str(flow.write(folder / "x.pcap"))]), StreamSettings())


def _rules(diagnosis: Diagnosis) -> set[str]:
    return set(diagnosis.findings.column("rule").to_pylist())


def _times(diagnosis: Diagnosis, name: str) -> list[tuple[int, int]]:
    rows = diagnosis.derived.of(EXCHANGES_WITH_BODIES).to_pylist()
    return [(row["latency_us"], row["service_us"]) for row in rows if row["api_name"] == name]


@pytest.fixture(scope="module")
def polling(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    return _judged(tmp_path_factory.mktemp("polling"), _polling(T0))


def test_a_request_behind_a_long_poll_is_no_slow_answer(polling: Diagnosis) -> None:
    assert "latency_outlier" not in _rules(polling)


def test_service_begins_when_the_poll_was_answered(polling: Diagnosis) -> None:
    found = _times(polling, "FindCoordinator")
    assert len(found) == ROUNDS + BEHIND
    assert {service for _, service in found} <= set(range(400, 700))
    assert sum(latency > POLL_US - 20_000 for latency, _ in found) == BEHIND
    assert all(service > POLL_US - 1000 for _, service in _times(polling, "Fetch"))


def test_minutes_count_the_service_and_state_the_waiting(polling: Diagnosis) -> None:
    rows = [r for r in polling.derived.of(API_LATENCY).to_pylist() if r["api_name"] == "FindCoordinator"]
    assert max(row["max_us"] for row in rows) < 1000
    assert max(row["longest_wait_us"] for row in rows) > POLL_US - 20_000
    fetches = [r for r in polling.derived.of(API_LATENCY).to_pylist() if r["api_name"] == "Fetch"]
    assert min(row["p50_us"] for row in fetches) > POLL_US - 1000


def test_a_broker_that_is_slow_once_the_turn_has_come_is_found(tmp_path: Path) -> None:
    assert "latency_outlier" in _rules(_judged(tmp_path, _polling(T0, taken_us=3_000_000)))


def test_of_requests_sent_at_once_each_is_judged_by_its_own_time(tmp_path: Path) -> None:
    diagnosis = _judged(tmp_path, _pipelined(T0))
    assert "latency_outlier" not in _rules(diagnosis)
    found = _times(diagnosis, "FindCoordinator")
    assert max(latency for latency, _ in found) > 1_400_000
    assert {round(service, -4) for _, service in found} == {300_000}
