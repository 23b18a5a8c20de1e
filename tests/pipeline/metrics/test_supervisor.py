"""What systemd hears of a service, over a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.metrics import supervisor
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.supervisor import Supervisor


@pytest.fixture
def notified(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(0)
        yield receiver


def heard(receiver: socket.socket) -> list[bytes]:
    messages = []
    while True:
        try:
            messages.append(receiver.recv(100))
        except BlockingIOError:
            return messages


def environment(receiver: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": receiver.getsockname(), **more}


def test_ready_once_then_the_watchdog_twice_a_period(notified: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now[0])
    service = Supervisor(environment(notified, WATCHDOG_USEC="10000000"))
    for seconds in range(0, 21):
        now[0] = 100.0 + seconds
        service.alive()
    assert heard(notified) == [b"READY=1", *[b"WATCHDOG=1"] * 4]


def test_without_a_watchdog_it_is_ready_and_no_more(notified: socket.socket) -> None:
    service = Supervisor(environment(notified))
    service.alive()
    service.alive()
    assert heard(notified) == [b"READY=1"]


def test_outside_a_unit_it_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr(supervisor.socket, "socket", opened.append)
    Supervisor({"WATCHDOG_USEC": "x"}).alive()
    assert opened == []


def test_what_systemd_does_not_take_is_sent_again(tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    service = Supervisor({"NOTIFY_SOCKET": place})
    service.alive()  # nobody listens yet
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(place)
        receiver.settimeout(0)
        service.alive()
        assert heard(receiver) == [b"READY=1"]


def test_what_proves_life_to_metrics_proves_it_to_systemd(
    notified: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(notified).items():
        monkeypatch.setenv(name, value)
    Exposed().beat()
    assert heard(notified) == [b"READY=1"]
