"""Incidents of clients that cannot connect, or are cut off: no listener, no login, a name of elsewhere, an idle limit.

A broker with four listeners. `guest` lacks the login that one of them wants; `outside` is sent to a name that it cannot
resolve; `early` asks where nobody listens. `quiet` writes every 33 seconds through a proxy that answers with a reset to
what comes on a connection after 31 seconds of silence.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.18"}
LOGIN, AWAY, NOBODY, PROXY, BEHIND = (f"127.0.2.{number}" for number in (19, 20, 21, 22, 23))
MORE_HOSTS = (LOGIN, AWAY, NOBODY, PROXY)
PORT, LOGIN_PORT, AWAY_PORT, BEHIND_PORT = 9092, 9093, 9094, 9095
MORE_PORTS = (LOGIN_PORT, AWAY_PORT)
LISTENERS = {"LOGIN": f"{LOGIN}:{LOGIN_PORT}", "AWAY": f"{AWAY}:{AWAY_PORT}", "BEHIND": f"{BEHIND}:{BEHIND_PORT}"}
ADVERTISED = {**LISTENERS, "AWAY": "kafka-internal:29092", "BEHIND": f"{PROXY}:{PORT}"}


def _listed(of: dict[str, str]) -> str:
    return "".join(f",{name}://{address}" for name, address in of.items())


PROPERTIES = f"""\
listeners=PLAINTEXT://{{host}}:{{port}},CONTROLLER://127.0.0.1:{{controller_port}}{_listed(LISTENERS)}
advertised.listeners=PLAINTEXT://{{host}}:{{port}}{_listed(ADVERTISED)}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT,AWAY:PLAINTEXT,BEHIND:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    user_app="app";
"""
ASKS_S, IDLE_S, PAUSE_S, WRITES = 20.0, 31.0, 33.0, 3
HOST = "127.0.0.1"
FINDINGS = {
    ("connection_failed", f"{LOGIN}:{LOGIN_PORT}/sasl/guest/{HOST}"),
    ("connection_failed", f"{AWAY}:{AWAY_PORT}/advertised/outside/{HOST}"),
    ("connection_failed", f"{NOBODY}:{PORT}/refused"),
    ("connection_failed", f"{PROXY}:{PORT}/idle/quiet/{HOST}"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Three that get nowhere, while the fourth writes now and then."""
    admin = AdminClient({"bootstrap.servers": bootstraps["kafka4"]})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
    with _forgetting():
        clients = [
            threading.Thread(target=_ask, args=(truth, client_id, server))
            for client_id, server in (
                ("guest", LISTENERS["LOGIN"]),
                ("outside", LISTENERS["AWAY"]),
                ("early", f"{NOBODY}:{PORT}"),
            )
        ]
        for client in (*clients, threading.Thread(target=_write, args=(truth,))):
            client.start()
            clients = [*clients, client]
        for client in clients:
            client.join()
    capture_over()


def _config(client_id: str, server: str) -> dict[str, object]:
    return {
        "bootstrap.servers": server, "client.id": client_id, "log_level": 0, "reconnect.backoff.ms": 500,
        "reconnect.backoff.max.ms": 2000, "enable.metrics.push": False,
    }  # fmt: skip


def _ask(truth: Truth, client_id: str, server: str) -> None:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    producer = Producer(_config(client_id, server))
    producer.produce("orders", value=b"0")
    left = producer.flush(ASKS_S)
    producer.purge()
    truth.add(client_id, "waiting", records=left)


def _write(truth: Truth) -> None:
    truth.client("quiet", rd.LIBRARY, "Python", rd.VERSION)
    producer = Producer(_config("quiet", f"{PROXY}:{PORT}"))
    for number in range(WRITES):
        if number:
            time.sleep(PAUSE_S)
        producer.produce("orders", value=b"0", partition=0)
        producer.flush(10)
    truth.add("quiet", "written", records=WRITES)


@contextlib.contextmanager
def _forgetting() -> Iterator[None]:
    """A proxy that forgets connections, as balancers and NAT gateways do."""
    server = socket.create_server((PROXY, PORT))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=_forward, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        server.close()


def _forward(client: socket.socket) -> None:
    broker = socket.create_connection((BEHIND, BEHIND_PORT))

    def back() -> None:
        with contextlib.suppress(OSError):
            while data := broker.recv(65_536):
                client.sendall(data)

    threading.Thread(target=back, daemon=True).start()
    heard = time.monotonic()
    with contextlib.suppress(OSError):
        while data := client.recv(65_536):
            if time.monotonic() - heard > IDLE_S:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
            heard = time.monotonic()
            broker.sendall(data)
    client.close()
    broker.close()
