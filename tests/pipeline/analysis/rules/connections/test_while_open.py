"""Connections that nobody has ended yet are judged while the capture continues."""

from __future__ import annotations

from pathlib import Path

from pipeline.capture.landing.stores import LocalStore
from pipeline.capture.runs.run import CaptureRun
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, packets
from tests.pipeline.capture.wire import ACK, FIN

METADATA = 3


def given_up(number: int) -> Door:
    """After a pause a request is sent again and again; the client closes, and nothing answers that, either."""
    some = door(number, 100 * number).begun()
    some.wait(60)
    begin = some.seq[0]
    some.ask(METADATA, 5, {"topics": [{"name": "orders"}]})
    data = some.packets[-1].data[-(some.seq[0] - begin) :]
    some.sends_again(0, data, 4)
    some.add(0, some.seq[0], some.seq[1], FIN | ACK)
    return some


def test_a_connection_that_is_forgotten_is_found_before_it_is_over(tmp_path: Path) -> None:
    with CaptureRun(LocalStore(tmp_path), agent_id="a") as run:
        for packet in packets(*map(given_up, range(3))):
            run.take(packet)
        run.add(run.agent.wait(1_000_000))
        run.publish()
    found = diagnose(read_inputs([str(tmp_path)]), StreamSettings()).findings.to_pylist()
    subjects = [row["subject"] for row in found if row["rule"] == "connection_failed"]
    assert subjects == [f"{SERVER}:9092/idle/app/{HOST}"]
