"""Who may see the page: what command line and environment state about it, checked before anything listens."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.tokens import checked_token, new_token, read_token
from pipeline.dashboard.web.serving.names import is_loopback, read_host
from pipeline.errors import UserError

TOKEN = "WIRELAKE_PAGE_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable that holds the token of a service."""
_HEADER = re.compile(r"[A-Za-z0-9-]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that has asked who somebody is.

    Attributes:
        header: which it sets to the user's name, in lower case.
        networks: where it may connect from; of others, the header is not believed.
    """

    header: str
    networks: tuple[Network, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """What a request must show.

    Attributes:
        names: which the page answers to, besides loopback names and the address that a request came to.
        token: None where none is asked for.
        is_token_new: it was made for this run, so that only the link that is printed contains it.
        proxy: through which requests must come; None if they may come straight.
    """

    names: frozenset[str]
    token: str | None = None
    is_token_new: bool = False
    proxy: Proxy | None = None


def access(
    host: str,
    *,
    allow_hosts: Sequence[str] = (),
    token_file: Path | None = None,
    behind_proxy: str | None = None,
    proxy_from: Sequence[str] = (),
    environment: MutableMapping[str, str] = os.environ,
) -> Access:
    """Decide what a request must show where the page listens on ``host``.

    Beyond loopback that is a token, made up here unless one is given, or what a proxy states.

    Args:
        host: the address to listen on.
        allow_hosts: further names and addresses that people type to reach the page.
        token_file: holds the token; wins over the environment.
        behind_proxy: the header in which a proxy names the user.
        proxy_from: addresses and networks of that proxy.
        environment: may hold the token, which is taken out: a browser that is started has no use for it.

    Raises:
        UserError: something of it cannot be meant.
    """
    names = frozenset(_name(one) for one in allow_hosts)
    own = read_host(host)
    if own is not None and not _is_unspecified(own):
        names |= {own}
    token = environment.pop(TOKEN, None)
    if token_file is not None:
        token = read_token(token_file)
    if token is not None:
        token = checked_token(token, TOKEN if token_file is None else str(token_file))
    proxy = _proxy(behind_proxy, proxy_from)
    if token is None and proxy is None and not is_loopback(host):
        return Access(names, new_token(), is_token_new=True)
    return Access(names, token, proxy=proxy)


def _name(text: str) -> str:
    name = read_host(text)
    if name is None or _is_unspecified(name):
        raise UserError(
            f"--allow-host {text!r} is not the name of a host: write it without http:// and without a port, "
            "e.g. --allow-host dash.example.org"
        )
    return name


def _is_unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _proxy(header: str | None, places: Sequence[str]) -> Proxy | None:
    if header is None:
        if places:
            raise UserError("--proxy-from needs --behind-proxy with the header that names the user")
        return None
    if not _HEADER.fullmatch(header):
        raise UserError(f"--behind-proxy {header!r} is not the name of a header, e.g. X-Forwarded-User")
    if not places:
        raise UserError(
            f"--behind-proxy {header} needs to know whom to believe: name the proxy's address with --proxy-from, "
            "e.g. --proxy-from 127.0.0.1; anybody else could set that header"
        )
    return Proxy(header.lower(), tuple(_network(one) for one in places))


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise UserError(f"--proxy-from {text!r} is not an address or network, e.g. 10.1.2.3 or 10.1.2.0/24") from error
    if network.prefixlen == 0:
        raise UserError(f"--proxy-from {text} allows every address: name the proxy's own one")
    return network
