"""The name that a browser used for this page, and the page from which a request comes.

``Host`` and ``Origin``, read strictly: what is not written as browsers write it is no name of ours.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,254}))(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MOST_PORTS = 65_535


@dataclass(frozen=True, slots=True)
class Place:
    """A host as a browser was given it.

    Attributes:
        host: a name in lower case without the dot at its end, or an IP address in its usual form.
        port: None where none was written, which means that of the scheme.
    """

    host: str
    port: int | None


@dataclass(frozen=True, slots=True)
class Origin:
    """The page that makes a browser send a request: its scheme, and where it came from."""

    scheme: str
    place: Place

    def is_of(self, place: Place) -> bool:
        """Whether this is the very page that ``place`` names: another port is another page."""
        default = _DEFAULT_PORTS[self.scheme]
        return self.place.host == place.host and (self.place.port or default) == (place.port or default)


def read_place(text: str) -> Place | None:
    """What a ``Host`` header states; None if it is no host, or more than one (user names, paths, lists, shorthands)."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    literal, name, digits = match.groups()
    port = None if digits is None else int(digits)
    if port is not None and not 0 < port <= _MOST_PORTS:
        return None
    if literal is not None and ":" not in literal:
        return None
    host = read_host(literal or name)
    return None if host is None else Place(host, port)


def read_origin(text: str) -> Origin | None:
    """What an ``Origin`` header states; None if it is no page of a web server: ``null``, ``file://``, an extension."""
    match = _ORIGIN.fullmatch(text)
    place = read_place(match[2]) if match else None
    return Origin(match[1].lower(), place) if match and place else None


def read_host(text: str) -> str | None:
    """A name or an IP address in the one form in which it is compared; None if it is neither.

    What ends in a number is an IPv4 address or nothing: browsers read ``127.1`` and ``0x7f000001`` as one, and write
    it out before they send it.
    """
    host = text.lower().removesuffix(".")
    try:
        return usual_form(ipaddress.ip_address(host))
    except ValueError:
        labels = host.split(".")
        is_number = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) is not None
        is_name = re.fullmatch(r"[a-z0-9_.-]+", host) is not None
        return host if is_name and all(labels) and not is_number else None


def usual_form(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """An address as text, that of IPv4 without the shell in which a socket for both shows it."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def is_loopback(host: str) -> bool:
    """Whether ``host``, a name or an IP address, is this machine for itself and no other."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
