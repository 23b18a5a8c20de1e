"""Decrypts TLS by tshark, with the keys of a key log; the plain bytes continue like any other stream.

tshark reads the same file beside us and reports of each decrypted TLS record in which packet it became whole. There its
bytes take the place of the encrypted ones. tshark keeps what it decrypts in memory: about four bytes for each of TLS.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, cast

from pipeline.capture.network.link import Endpoint
from pipeline.capture.packets.packet import ByteSource, CaptureError, Damage, Packet
from pipeline.capture.packets.pcapng import read_pcapng
from pipeline.capture.packets.sources import STDIN
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.tracker import Kind, StreamEvent, Tracker
from pipeline.setup.system import TSHARK, install_command

MAX_ENCRYPTED_TAIL_BYTES = 256
"""Encrypted bytes after the last decrypted ones that are no loss: alerts and key updates carry no data."""

_KEY_LOG_LINE = re.compile(rb"^[A-Z0-9_]+ [0-9a-fA-F]{64} [0-9a-fA-F]+\s*$", re.MULTILINE)
_KEY_LOG_BYTES_LOOKED_AT = 1 << 20
_ANY_PORT = "1-65535"
_OPTIONS = (
    *("-n", "--disable-protocol", "kafka", "-d", f"tcp.port=={_ANY_PORT},tls", "-d", f"tls.port=={_ANY_PORT},data"),
    *("-d", "udp.port==8472,vxlan", "-d", "ethertype==0x9200,vlan", "-o", "tcp.reassemble_out_of_order:TRUE"),
    *("-U", "OSI layer 7", "-w", "-"),
)
_TAG = struct.Struct("!HH")
_TAG_END, _TAG_PORT_TYPE, _TAG_SOURCE_PORT, _TAG_DESTINATION_PORT, _TAG_PACKET = 0, 24, 25, 26, 30
_TAGS_SOURCE, _TAGS_DESTINATION = (20, 22), (21, 23)  # IPv4, IPv6
_PORT_TYPE_TCP = (2).to_bytes(4, "big")


class _Plain(NamedTuple):
    """The content of a TLS record that became whole in packet ``number`` (from 1), captured at ``ts`` (µs)."""

    number: int
    ts: int
    source: Endpoint
    destination: Endpoint
    data: bytes


class _Direction:
    """What came encrypted since the last bytes that were decrypted."""

    __slots__ = ("has_hole", "seen_plain", "undecrypted")

    def __init__(self) -> None:
        self.undecrypted = 0
        self.has_hole = False
        self.seen_plain = False


class Decryption:
    """Decrypts one capture file; a context, because tshark must not outlive it.

    Args:
        path: the capture.
        key_log: file in the format of SSLKEYLOGFILE; None: there is none.
        use_embedded: decrypt with keys that the capture itself holds. Only if asked: who made the capture would
            otherwise choose that another, large program reads it.

    Raises:
        CaptureError: the key log cannot be read, tshark is missing, or the capture is not a file.

    Attributes:
        connections: how many were decrypted.
    """

    def __init__(self, path: str, key_log: str | Path | None = None, *, use_embedded: bool = False) -> None:
        self.connections = 0
        self._path = path
        self._use_embedded = use_embedded
        if use_embedded and path == STDIN:
            raise self._unreadable_twice()
        self._process: subprocess.Popen[bytes] | None = None
        self._plain: Iterator[_Plain] = iter(())
        self._next: _Plain | None = None
        self._directions: dict[Connection, tuple[_Direction, _Direction]] = {}
        if key_log is not None:
            _check_key_log(Path(key_log))
            self._start("-o", f"tls.keylog_file:{Path(key_log).absolute()}")

    def __enter__(self) -> Decryption:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    @property
    def active(self) -> bool:
        """Whether tshark is at work."""
        return self._process is not None

    def found_secrets(self) -> bool:
        """The capture holds its own keys: decrypt with them if that was asked for. Returns whether they are used."""
        if self._process is None and self._use_embedded:
            self._start()
        return self.active

    def translate(self, events: Iterable[StreamEvent], number: int, tracker: Tracker) -> Iterator[StreamEvent]:
        """The events of packet ``number``, with plain bytes in the place of encrypted ones.

        Raises:
            CaptureError: tshark failed.
        """
        ends = []
        for event in events:
            if event.kind in (Kind.CLOSED, Kind.ENDED):
                ends.append(event)
            elif event.connection in self._directions:
                direction = self._directions[event.connection][event.direction]
                direction.undecrypted += len(event.data) + event.lost
                direction.has_hole |= event.kind is Kind.LOST
            else:
                yield event
        while self._next is not None and self._next.number <= number:
            yield from self._decrypted(self._next, tracker.find(self._next.source, self._next.destination))
            self._next = next(self._plain, None)
        for event in ends:
            yield from self._end(event)

    def _start(self, *options: str) -> None:
        if self._path == STDIN:
            raise self._unreadable_twice()
        if shutil.which(TSHARK.command) is None:
            raise CaptureError(
                self._path,
                f"needs {TSHARK.command} to decrypt TLS: {install_command(TSHARK)} (or do not ask for it)",
            )
        command = [TSHARK.command, "-r", self._path, *options, *_OPTIONS]
        # No settings of the user's own Wireshark; what tshark prints may hold secrets, so it is never shown.
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": os.devnull}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._plain = self._read(self._process)
        self._next = next(self._plain, None)

    def _unreadable_twice(self) -> CaptureError:
        return CaptureError(self._path, "cannot be decrypted: save the capture to a file, it has to be read twice")

    def _read(self, process: subprocess.Popen[bytes]) -> Iterator[_Plain]:
        source = ByteSource(cast(BinaryIO, process.stdout))
        try:
            if source.upto(4):
                for packet in read_pcapng(source):
                    plain = _exported(packet)
                    if plain is not None:
                        yield plain
        except (Damage, struct.error, KeyError) as error:
            raise CaptureError(self._path, "cannot be decrypted: the output of tshark is damaged") from error
        if process.wait() not in (0, 2):  # 2: the capture is cut off, which our own reader reports
            raise CaptureError(
                self._path, f"cannot be decrypted: tshark failed (exit code {process.returncode}); try tshark -r on it"
            )

    def _decrypted(self, plain: _Plain, connection: Connection | None) -> Iterator[StreamEvent]:
        if connection is None:
            return
        if connection not in self._directions:
            self._directions[connection] = (_Direction(), _Direction())
            self.connections += 1
            yield StreamEvent(connection, Kind.DECRYPTED, ts=plain.ts)
        number = 0 if plain.source == connection.a else 1
        direction = self._directions[connection][number]
        if direction.has_hole:
            yield StreamEvent(connection, Kind.LOST, number, lost=direction.undecrypted, ts=plain.ts)
        direction.undecrypted, direction.has_hole, direction.seen_plain = 0, False, True
        yield StreamEvent(connection, Kind.DATA, number, plain.data, ts=plain.ts)

    def _end(self, event: StreamEvent) -> Iterator[StreamEvent]:
        for number, direction in enumerate(self._directions.pop(event.connection, ())):
            has_tail = direction.seen_plain and direction.undecrypted > MAX_ENCRYPTED_TAIL_BYTES
            if direction.has_hole or has_tail:
                yield StreamEvent(event.connection, Kind.LOST, number, lost=direction.undecrypted, ts=event.ts)
        yield event


def _check_key_log(path: Path) -> None:
    """Raises CaptureError if this is no key log. What it holds is never shown."""
    try:
        with path.open("rb") as file:
            head = file.read(_KEY_LOG_BYTES_LOOKED_AT)
    except OSError as error:
        raise CaptureError(str(path), f"cannot be read: {error.strerror}") from error
    if not _KEY_LOG_LINE.search(head):
        raise CaptureError(
            str(path),
            "is not a TLS key log; expected lines such as CLIENT_RANDOM …, as SSLKEYLOGFILE makes programs write",
        )


def _exported(packet: Packet) -> _Plain | None:
    """One exported PDU: tags, each with type and length, then the data; None if it did not come over TCP."""
    tags: dict[int, bytes] = {}
    at = 0
    while True:
        tag, size = _TAG.unpack_from(packet.data, at)
        at += _TAG.size
        if tag == _TAG_END:
            break
        tags[tag] = packet.data[at : at + size]
        at += size
    if tags.get(_TAG_PORT_TYPE) != _PORT_TYPE_TCP:
        return None
    return _Plain(
        _number(tags[_TAG_PACKET]),
        packet.ts_us,
        (_first(tags, _TAGS_SOURCE), _number(tags[_TAG_SOURCE_PORT])),
        (_first(tags, _TAGS_DESTINATION), _number(tags[_TAG_DESTINATION_PORT])),
        packet.data[at:],
    )


def _number(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _first(tags: dict[int, bytes], names: tuple[int, ...]) -> bytes:
    return next(tags[name] for name in names if name in tags)
