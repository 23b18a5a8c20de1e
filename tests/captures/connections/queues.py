"""Connections that the server's host accepts and that wait for its process."""

from __future__ import annotations

import socket
import time

from tests.captures.connections.clients import java, kafka_python, pymongo_asks, together, write
from tests.captures.connections.story import Stage

_WAITS_S = 24.0


def connections_wait(stage: Stage) -> None:
    """max.connections lets two in; one client that holds them works, connections of others wait."""

    def late(name: str) -> None:
        time.sleep(3)
        write(stage.server, name, _WAITS_S - 4, every=0.5, api_version_request_timeout_ms=4000)

    together(
        lambda: write(stage.server, "holder", _WAITS_S, every=0.5),
        lambda: late("late"),
        lambda: late("late-too"),
        lambda: (time.sleep(3), kafka_python(stage.server, "late-python", _WAITS_S - 6)),
    )


def queue_full(stage: Stage) -> None:
    """A process listens, accepts nothing, and its queue is full; librdkafka, Java and kafka-python connect."""
    with socket.socket() as listener:
        _listen(listener, stage)
        together(
            lambda: write(stage.server, "queued", _WAITS_S, socket_connection_setup_timeout_ms=8000),
            lambda: java(stage.server, "queued-java", _WAITS_S, socket_connection_setup_timeout_ms=8000),
            lambda: kafka_python(stage.server, "queued-python", _WAITS_S),
        )


def mongodb_queue_full(stage: Stage) -> None:
    """A process listens, accepts nothing, and its queue is full; two clients of pymongo connect."""
    with socket.socket() as listener:
        _listen(listener, stage)
        together(
            *(
                lambda name=name: pymongo_asks(stage.server, name, _WAITS_S, connectTimeoutMS=7000)
                for name in ("queued", "queued-too")
            )
        )


def _listen(listener: socket.socket, stage: Stage) -> None:
    listener.bind((stage.host, stage.port))
    listener.listen(1)
