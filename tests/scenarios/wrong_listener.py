"""Incidents of clients that ask where no broker listens: an HTTP server, a TLS listener, a port that only closes.

Producers of librdkafka begin as they do with any broker. The HTTP server answers 400, the other two
close each connection as soon as something comes.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Producer

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS: dict[str, str] = {}
HTTP, TLS, CLOSING = "127.0.2.15", "127.0.2.16", "127.0.2.17"
MORE_HOSTS = (HTTP, TLS, CLOSING)
PORT, ASKS_S = 9092, 12.0
FINDINGS = {
    ("other_protocol", f"{HTTP}:{PORT}/Kafka/HTTP"),
    ("other_protocol", f"{TLS}:{PORT}/Kafka/nothing"),
    ("other_protocol", f"{CLOSING}:{PORT}/Kafka/nothing"),
}


def play(_bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """A client for each of the three, at the same time."""
    with _http(), _tls(), _closing():
        clients = [
            threading.Thread(target=_ask, args=(truth, client_id, host))
            for client_id, host in (("web", HTTP), ("plain", TLS), ("lost", CLOSING))
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    capture_over()


def _ask(truth: Truth, client_id: str, host: str) -> None:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    config = {
        "bootstrap.servers": f"{host}:{PORT}", "client.id": client_id, "log_level": 0, "reconnect.backoff.ms": 500,
        "reconnect.backoff.max.ms": 2000,
    }  # fmt: skip
    producer = Producer(config)
    producer.produce("orders", value=b"0")
    left = producer.flush(ASKS_S)
    producer.purge()
    truth.add(client_id, "waiting", records=left)


@contextlib.contextmanager
def _http() -> Iterator[None]:
    """Answers as a proxy in HTTP mode does."""

    def refuse(connection: socket.socket) -> None:
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 400 Bad request\r\nConnection: close\r\n\r\n")

    with _listening(HTTP, refuse):
        yield


@contextlib.contextmanager
def _tls() -> Iterator[None]:
    """A TLS listener: OpenSSL ends the handshake with what is no TLS, and Python closes without an alert."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = Path(folder) / "key.pem", Path(folder) / "certificate.pem"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker"]
        subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)

        def shake_hands(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True)

        with _listening(TLS, shake_hands):
            yield


@contextlib.contextmanager
def _closing() -> Iterator[None]:
    def read_and_close(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.close()

    with _listening(CLOSING, read_and_close):
        yield


@contextlib.contextmanager
def _listening(host: str, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    server = socket.create_server((host, PORT))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                serve(connection)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        server.close()
