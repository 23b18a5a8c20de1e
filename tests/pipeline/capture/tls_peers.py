"""Real TLS on loopback: Python's ssl plays what it is given, tcpdump records it, and the client writes its key log."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.tcpdump import Tcpdump

SERVER_NAME = "broker.example"

Dialogue = Sequence[tuple[int, bytes]]
"""Who sends what: 0 the client, 1 the server."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A capture of TLS, and its keys.

    Attributes:
        port: the server's.
        versions: TLS version of each connection, and whether it resumed an earlier session.
    """

    capture: Path
    key_log: Path
    port: int
    versions: list[tuple[str | None, bool | None]]


def certificate(folder: Path) -> Path:
    """A key and a certificate signed by itself, in one file."""
    path = folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={SERVER_NAME}"]
    subprocess.run([*made, "-keyout", str(path), "-out", str(folder / "public.pem")], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + (folder / "public.pem").read_bytes())
    return path


def record(
    folder: Path,
    dialogues: Sequence[Dialogue],
    version: ssl.TLSVersion,
    *,
    ciphers: str | None = None,
    resume: bool = False,
    header: bytes = b"",
) -> Recording:
    """Speak each dialogue on a connection of its own, one after the other; ``resume`` the session of the one before.

    ``header`` is sent in clear before the handshake, as a proxy does.
    """
    server_context, client_context = _contexts(folder, version, ciphers)
    versions = []
    with socket.create_server(("127.0.0.1", 0)) as listener, _tcpdump(folder, listener):
        session = None
        for dialogue in dialogues:
            serving = threading.Thread(target=_serve, args=(listener, server_context, dialogue, len(header)))
            serving.start()
            raw = socket.create_connection(listener.getsockname(), timeout=30)
            raw.sendall(header)
            with client_context.wrap_socket(raw, server_hostname=SERVER_NAME, session=session) as client:
                _speak(client, dialogue, 0)
                versions.append((client.version(), client.session_reused))
                session = client.session if resume else None
            serving.join()
        port = _port(listener)
    return Recording(folder / "tls.pcap", folder / "keys.log", port, versions)


def _contexts(folder: Path, version: ssl.TLSVersion, ciphers: str | None) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(certificate(folder))
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.keylog_filename = str(folder / "keys.log")
    for context in (server, client):
        context.minimum_version = context.maximum_version = version
        if ciphers is not None:
            context.set_ciphers(ciphers)
    return server, client


def _tcpdump(folder: Path, listener: socket.socket) -> Tcpdump:
    return Tcpdump(folder / "tls.pcap", [_port(listener)], buffer_kib=65_536)  # for segments of 64 KiB without a pause


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _serve(listener: socket.socket, context: ssl.SSLContext, dialogue: Dialogue, header: int) -> None:
    raw, _ = listener.accept()
    raw.settimeout(30)
    raw.recv(header, socket.MSG_WAITALL)
    with context.wrap_socket(raw, server_side=True) as server:
        _speak(server, dialogue, 1)
        server.recv(1)  # until the client closes


def _speak(connection: ssl.SSLSocket, dialogue: Dialogue, me: int) -> None:
    for side, data in dialogue:
        if side == me:
            connection.sendall(data)
        else:
            _receive(connection, len(data))


def _receive(connection: ssl.SSLSocket, count: int) -> None:
    while count:
        count -= len(connection.recv(count))
