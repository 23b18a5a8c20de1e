"""The clients that a finding names: those in its ``details``, wherever a rule states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.analysis.rules.model import NAMELESS

_CALLERS = ("clients", "committers", "committer", "callers")
"""Those that hold ``client_id at address``."""
_CLIENT_NAMES, _CLIENT_HOSTS = ("client_id", "client", "application"), ("host", "client_ip", "address", "hosts")
"""Fields of an object that names one client."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A client and the host that it runs on, as far as they are known.

    Attributes:
        address: ``ip:port`` of a process that shares client id and host with others.
    """

    client_id: str | None
    host: str | None
    address: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        name = self.client_id or NAMELESS
        return f"{name} ({self.address or self.host})" if self.host else name


def texts_of(value: object) -> Iterator[str]:
    """A text, or the texts of a list."""
    for one in value if isinstance(value, list) else (value,):
        if isinstance(one, str):
            yield one


def callers_in(value: object, key: str = "") -> Iterator[Caller]:
    """Who is in ``details``: ``client_id at address``, or an object with ``client_id`` and an address."""
    if isinstance(value, dict):
        name = next((value[key] for key in _CLIENT_NAMES if isinstance(value.get(key), str)), None)
        host = next((one for key in _CLIENT_HOSTS for one in texts_of(value.get(key))), None)
        if name is not None or ("client_id" in value and host is not None):
            yield Caller(name, None if host is None else host_of_address(host))
        for inner_key, inner in value.items():
            yield from callers_in(inner, inner_key)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, str) and key in _CALLERS:
                name, _, host = inner.rpartition(" at ")
                known = None if name.startswith("a client without") else name or inner
                yield Caller(known, host_of_address(host) if name else None)
            elif isinstance(inner, str) and key in ("client_ids", "writers"):
                yield Caller(inner, None)
            else:
                yield from callers_in(inner, key)


def host_of_address(address: str) -> str:
    """The host of ``ip`` or ``ip:port``; an IPv6 address has many colons, and brackets if a port follows."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address
