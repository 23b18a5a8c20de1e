"""The PROXY protocol's header (versions 1 and 2), which a proxy writes in front of a client's bytes to name the client.

Specification: haproxy.org, ``doc/proxy-protocol.txt``. A header that breaks it is none: its bytes are the stream's.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

_TEXT = b"PROXY "
_MAX_TEXT_BYTES = 107
_LINE = re.compile(rb"PROXY (?:UNKNOWN(?: [^\r\n]*)?|(TCP4|TCP6) (\S+) (\S+) (\d{1,5}) (\d{1,5}))\r\n")
_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_HEAD_BYTES = 16
_MAX_BYTES = 64 * 1024
"""A binary header may state 65,551 bytes. What it holds beside addresses takes some hundred; a client certificate, some
thousand. The bytes are kept until the header is whole."""
_VERSION_2, _LOCAL, _PROXY = 2, 0, 1
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}
"""Of TCP over IPv4 and IPv6. With any other family (none, UNIX, UDP) the header names no client that we could show."""

Client = tuple[str, int]
"""Address and port."""


class ProxyHeader(NamedTuple):
    """A header at the beginning of a stream.

    Attributes:
        size: its bytes; more than there are, if it is not whole.
        client: whom the proxy speaks for; None if it does not say.
    """

    size: int
    client: Client | None = None


def may_begin_header(data: bytes) -> bool:
    """Whether the first bytes of a stream are worth a look: cheap, for nearly all are not."""
    return data[:1] in (b"P", b"\r")


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """The header that a stream begins with; None if it begins with anything else."""
    if data[:1] == b"P":
        return _text(data)
    if data[:1] == b"\r":
        return _binary(data)
    return None


def _text(data: bytes) -> ProxyHeader | None:
    if not _TEXT.startswith(data[: len(_TEXT)]):
        return None
    end = data.find(b"\r\n", 0, _MAX_TEXT_BYTES)
    if end < 0:
        return ProxyHeader(len(data) + 1) if len(data) < _MAX_TEXT_BYTES else None
    line = _LINE.fullmatch(data[: end + 2])
    if line is None:
        return None
    if line[1] is None:
        return ProxyHeader(end + 2)
    version = 4 if line[1] == b"TCP4" else 6
    ends = [_address(line[number].decode("ascii", "replace"), version) for number in (2, 3)]
    ports = [int(line[number]) for number in (4, 5)]
    if None in ends or max(ports) > 0xFFFF:
        return None
    return ProxyHeader(end + 2, (ends[0] or "", ports[0]))


def _address(text: str, version: int) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(address) if address.version == version and "%" not in text else None


def _binary(data: bytes) -> ProxyHeader | None:
    if not _SIGNATURE.startswith(data[: len(_SIGNATURE)]):
        return None
    if len(data) < _HEAD_BYTES:
        return ProxyHeader(_HEAD_BYTES)
    version, command, family = data[12] >> 4, data[12] & 0x0F, data[13]
    size = _HEAD_BYTES + int.from_bytes(data[14:16], "big")
    width = _ADDRESS_BYTES.get(family, 0) if command == _PROXY else 0
    if version != _VERSION_2 or command not in (_LOCAL, _PROXY) or size > _MAX_BYTES:
        return None
    if width and size < _HEAD_BYTES + 2 * width + 4:
        return None
    if not width or len(data) < size:
        return ProxyHeader(size)
    port_at = _HEAD_BYTES + 2 * width
    address = ipaddress.ip_address(data[_HEAD_BYTES : _HEAD_BYTES + width])
    return ProxyHeader(size, (str(address), int.from_bytes(data[port_at : port_at + 2], "big")))
