"""A network namespace of one process: its loopback, its packet filter, its routes and its names end with it.

What a firewall, NAT gateway or tunnel does on the way is done by nftables where packets arrive, so that tcpdump sees
them and the receiver does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import encodings.idna  # noqa: F401  # a thread of another user may not read it
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_INSIDE = "CONNECTIONS_NAMESPACE"
_numbers = itertools.count()
_C = ctypes.CDLL(None)
_FIRST_USER = 40_000
_HOSTS = Path("/etc/hosts")
_naming = threading.Lock()
_users: dict[str, int] = {}


def inside(module: str, arguments: list[str]) -> int | None:
    """Run a module in namespaces of its own (network, mounts) and return its exit code; None where this is that run."""
    if os.environ.get(_INSIDE):
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "rule", "add", "pref", "10", "lookup", "local")
        _run("ip", "rule", "del", "pref", "0")
        _run("mount", "--make-rprivate", "/")
        return None
    command = ["unshare", "--net", "--mount", sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env={**os.environ, _INSIDE: "1"}, check=False).returncode


def comes_from(client: str, server: str) -> None:
    """Give connections to a server's address this client's address."""
    _run("ip", "route", "add", "local", f"{server}/32", "dev", "lo", "src", client, "table", "local")


def also_comes_from(client: str, server: str) -> None:
    """Give a server's address this client's address in what runs as :func:`user` of it."""
    user_id = _users.setdefault(client, _FIRST_USER + len(_users))
    number = str(user_id)
    _run("ip", "rule", "add", "pref", "5", "uidrange", f"{number}-{number}", "lookup", number)
    _run("ip", "route", "add", "local", f"{server}/32", "dev", "lo", "src", client, "table", number)


@contextlib.contextmanager
def user(client: str) -> Iterator[None]:
    """Connect from this host: sockets of this thread, and of threads that it starts, belong to the host's user."""
    _C.setfsuid(_users[client])
    yield
    _C.setfsuid(0)


def knows(folder: Path, name: str, *addresses: str) -> None:
    """Give a name these addresses, in the order in which clients try them."""
    with _naming:
        hosts = folder / "hosts"
        is_new = not hosts.exists()
        if is_new:
            hosts.write_text(_HOSTS.read_text())
        with hosts.open("a") as known:
            known.writelines(f"{address} {name}\n" for address in addresses)
        if is_new:
            _run("mount", "--bind", str(hosts), str(_HOSTS))


def filters(*rules: str, sets: str = "", hook: str = "input") -> str:
    """Apply rules of nftables to packets that arrive, or leave (``output``), until the end; the name of their table."""
    name = f"door{next(_numbers)}"
    chain = (f"type filter hook {hook} priority 0", "policy accept", *rules)
    lines = (f"table inet {name} {{", *filter(None, [sets]), "chain arriving {", *chain, "}", "}", "")
    _run("nft", "-f", "-", standard_input="\n".join(lines))
    return name


@contextlib.contextmanager
def filtered(*rules: str) -> Iterator[None]:
    """Apply rules of nftables to packets that arrive, for as long as this lasts."""
    name = filters(*rules)
    yield
    _run("nft", "delete", "table", "inet", name)


def forget(to: str, back: str, seconds: int) -> None:
    """Drop packets to and back from a server on connections that were silent for so long, as gateways and balancers do.

    Until the end: what is sent again later is dropped, too.
    """
    touch = f"timeout {seconds}s"
    filters(
        f"{to} tcp flags & (syn | ack) == syn update @alive {{ tcp sport {touch} }} accept",
        f"{to} tcp sport @alive update @alive {{ tcp sport {touch} }} accept",
        f"{back} tcp dport @alive update @alive {{ tcp dport {touch} }} accept",
        f"{to} drop",
        f"{back} drop",
        sets="set alive {\ntype inet_service\nflags dynamic, timeout\nsize 4096\n}",
    )


def ports_of(server: str, port: int) -> list[int]:
    """Ports of the clients that are connected to a server."""
    listed = subprocess.run(
        ["ss", "-Htn", "state", "established", "dst", server, "dport", "=", f":{port}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [int(line.split()[2].rpartition(":")[2]) for line in listed.stdout.splitlines()]


def _run(*command: str, standard_input: str | None = None) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, input=standard_input)
    if done.returncode:
        raise OSError(f"{' '.join(command)} failed: {done.stderr}")
