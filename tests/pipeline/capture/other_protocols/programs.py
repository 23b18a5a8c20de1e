"""Conversations of real programs and libraries."""

from __future__ import annotations

import http.client
import http.server
import random
import smtplib
import socket
import threading
import xmlrpc.client
import xmlrpc.server
from collections.abc import Callable
from contextlib import suppress

import h2.config
import h2.connection

from tests.pipeline.capture.other_protocols.conversation import Conversation, uint32


class Relay:
    """Is between a client and a server and notes what they send: ``with Relay(port) as relay: … relay.port``."""

    def __init__(self, server_port: int) -> None:
        self.sent: Conversation = []
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(30)
        self._listener.close()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
            back = threading.Thread(target=self._pump, args=(server, client, 1))
            back.start()
            self._pump(client, server, 0)
            back.join(30)

    def _pump(self, source: socket.socket, destination: socket.socket, side: int) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.sent.append((side, data))
                destination.sendall(data)
            destination.shutdown(socket.SHUT_WR)


def http_1(source: random.Random) -> Conversation:
    """Python's server of files, its client, and a body of random bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request).start()
        with Relay(server.server_port) as relay:
            client = http.client.HTTPConnection("127.0.0.1", relay.port)
            for _ in range(3):
                client.request("POST", "/topics/orders", source.randbytes(source.randrange(3000)))
                client.getresponse().read()
            client.close()
    return relay.sent


def xml_rpc(source: random.Random) -> Conversation:
    """Python's XML-RPC."""
    with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(sum, "sum")
        threading.Thread(target=server.handle_request).start()
        address = server.server_address[1]
        with Relay(address) as relay, xmlrpc.client.ServerProxy(f"http://127.0.0.1:{relay.port}") as proxy:
            proxy.sum([source.randrange(100) for _ in range(20)])
    return relay.sent


def smtp(source: random.Random) -> Conversation:
    """Python's client; a server that accepts everything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.write(b"220 mail.example ESMTP\r\n")
                stream.flush()
                in_data = False
                for line in stream:
                    in_data = in_data and line != b".\r\n"
                    if in_data:
                        continue
                    verb = line[:4].upper()
                    in_data = verb == b"DATA"
                    stream.write({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(verb, b"250 ok\r\n"))
                    stream.flush()

        threading.Thread(target=serve).start()
        with Relay(listener.getsockname()[1]) as relay, smtplib.SMTP("127.0.0.1", relay.port) as client:
            client.sendmail("a@example", ["b@example"], "Subject: x\r\n\r\n" + "hello " * source.randrange(500))
    return relay.sent


def http_2(source: random.Random) -> Conversation:
    """The h2 library, both sides."""
    return _http_2(source, lambda: source.randbytes(source.randrange(2000)), "text/plain")


def grpc(source: random.Random) -> Conversation:
    """Over HTTP/2: a byte, a length of four bytes, and protobuf."""

    def message() -> bytes:
        name = source.randbytes(5).hex().encode()
        return b"\0" + uint32(b"\x08" + bytes([source.randrange(128)]) + b"\x12" + bytes([len(name)]) + name)

    return _http_2(source, message, "application/grpc")


def _http_2(source: random.Random, body: Callable[[], bytes], content_type: str) -> Conversation:
    client = h2.connection.H2Connection()
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    sent: Conversation = []

    def exchange() -> None:
        for side, (sender, receiver) in enumerate(((client, server), (server, client))):
            data = sender.data_to_send()
            if data:
                sent.append((side, data))
                receiver.receive_data(data)

    client.initiate_connection()
    server.initiate_connection()
    exchange()
    for _ in range(source.randrange(1, 8)):
        stream = client.get_next_available_stream_id()
        headers = [(":method", "POST"), (":path", "/demo.Orders/Put"), (":scheme", "http"), (":authority", "orders")]
        client.send_headers(stream, [*headers, ("content-type", content_type)])
        client.send_data(stream, body(), end_stream=True)
        exchange()
        server.send_headers(stream, [(":status", "200"), ("content-type", content_type)])
        server.send_data(stream, body(), end_stream=True)
        exchange()
    return sent


PROGRAMS = (http_1, xml_rpc, smtp, http_2, grpc)
"""Spoken by real programs and libraries."""
