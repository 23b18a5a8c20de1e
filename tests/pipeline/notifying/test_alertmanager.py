"""What `wirelake notify` sends is what a real Alertmanager shows: alerts that begin, stay, and are resolved."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.notifying.message_formats import Shape
from tests.brokers.process import Server, free_ports
from tests.go_programs import go_program
from tests.pipeline.dashboard.web.addresses import sample_lake
from tests.pipeline.notifying.receiver import Receiver, receiving
from tests.pipeline.notifying.test_notify import PAGE, incident, look

pytestmark = pytest.mark.proof
_WAIT_S = 20.0


@pytest.fixture
def pager() -> Iterator[Receiver]:
    """Whom Alertmanager notifies."""
    with receiving() as held:
        yield held


@pytest.fixture
def manager(pager: Receiver, tmp_path: Path) -> Iterator[str]:
    """The address of an Alertmanager that notifies at once."""
    config = tmp_path / "alertmanager.yml"
    route = {"receiver": "pager", "group_wait": "0s", "group_interval": "1s", "group_by": ["incident_id"]}
    hook = {"url": f"{pager.url}/hook", "send_resolved": True}
    config.write_text(json.dumps({"route": route, "receivers": [{"name": "pager", "webhook_configs": [hook]}]}))
    (port,) = free_ports(1)
    command = [
        str(go_program("alertmanager")), f"--config.file={config}", f"--storage.path={tmp_path / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    ]  # fmt: skip
    with Server("Alertmanager", command, tmp_path / "log", tmp_path) as server:
        server.wait_until_listening("127.0.0.1", port)
        yield f"http://127.0.0.1:{port}"


def shown(manager: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{manager}/api/v2/alerts", timeout=10) as answer:  # noqa: S310 - on this machine
        alerts: list[dict[str, Any]] = json.load(answer)
    return alerts


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def notified(pager: Receiver, status: str) -> set[str]:
    alerts = [one for _, message in pager.taken for one in message["alerts"]]
    return {one["labels"]["incident_id"] for one in alerts if one["status"] == status}


def test_the_incidents_of_a_lake_become_alerts(manager: str, pager: Receiver, tmp_path: Path) -> None:
    lake = sample_lake(tmp_path)
    options = ["--shape", "alertmanager", "--severity", "warning", "--page", PAGE, "--state", str(tmp_path / "state")]
    for _ in range(2):
        done = CliRunner().invoke(app, ["notify", "--lake", str(lake), "--to", manager, "--once", *options])
        assert done.exit_code == 0, done.output
    alerts = shown(manager)
    assert "stuck_commit" in {one["labels"]["alertname"] for one in alerts}
    assert {one["status"]["state"] for one in alerts} == {"active"}
    assert all(one["generatorURL"].startswith(PAGE) for one in alerts)
    assert len({one["labels"]["incident_id"] for one in alerts}) == len(alerts)
    until(lambda: notified(pager, "firing") == {one["labels"]["incident_id"] for one in alerts})


def test_what_is_resolved_is_resolved_there(manager: str, pager: Receiver, tmp_path: Path) -> None:
    there = Receiver(url=manager)
    one, other = incident(1), incident(2)
    assert look(there, tmp_path / "state", Shape.ALERTMANAGER).take([one, other]) == (2, True)
    until(lambda: notified(pager, "firing") == {"incident_id 1", "incident_id 2"})
    over = {**other, "state": "resolved"}
    assert look(there, tmp_path / "state", Shape.ALERTMANAGER).take([one, over]) == (2, True)
    until(lambda: notified(pager, "resolved") == {"incident_id 2"})
    assert [alert["labels"]["incident_id"] for alert in shown(manager)] == ["incident_id 1"]
