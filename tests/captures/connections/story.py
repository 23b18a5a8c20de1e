"""What a recording is: who talks to whom, what is between, and what must be found in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers.kafka4 import Kafka4

SERVERS, CLIENTS, OTHERS = "127.0.3", "127.0.5", "127.0.6"
FIRST_PORT = 9092
Pair = tuple[str, str]
"""A rule and a subject; `{server}`, `{client}` and `{another}` stand for the addresses."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a story plays.

    Attributes:
        server: address and port that its clients are told.
        client: the address from which they come.
        another_client: the address of another host.
        folder: for files, with the certificates.
        broker: to be frozen or restarted by a story that has it alone.
    """

    server: str
    client: str
    another_client: str
    folder: Path
    broker: Kafka4

    @property
    def host(self) -> str:
        """The server's address."""
        return self.server.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self.server.rpartition(":")[2])

    @property
    def to(self) -> str:
        """Packets to the server, for nftables."""
        return f"ip daddr {self.host} tcp dport {self.port}"

    @property
    def back(self) -> str:
        """Packets of the server, for nftables."""
        return f"ip saddr {self.host} tcp sport {self.port}"


@dataclass(frozen=True, slots=True)
class Story:
    """A recording; its docstring, or that of its function, says what is wrong.

    Attributes:
        number: of its addresses and port.
        protocol: of the broker's listener; empty: the story brings what listens, if anything does.
        advertised: host and port that the broker names, if not its own.
        settings: of the listener alone.
        most_connections: that the broker accepts of the clients' address; 0: any number.
        findings: what must be found above info, and nothing else.
        info: what must be found for information.
        has_icmp: whether it holds ICMP errors, which twists of TCP segments do not know.
        also_at: another address that is recorded, which twists do not know either; empty: there is one.
        is_alone: whether nothing else may play meanwhile.
    """

    number: int
    name: str
    play: Callable[[Stage], None]
    protocol: str = "PLAINTEXT"
    advertised: str = ""
    settings: tuple[str, ...] = ()
    most_connections: int = 0
    findings: frozenset[Pair] = field(default_factory=frozenset)
    info: frozenset[Pair] = field(default_factory=frozenset)
    is_alone: bool = False
    is_mongodb: bool = False
    has_icmp: bool = False
    also_at: str = ""

    @property
    def listener(self) -> str:
        """The listener's name."""
        return f"L{self.number}"

    @property
    def client(self) -> str:
        """The clients' address."""
        return f"{CLIENTS}.{self.number}"

    @property
    def another_client(self) -> str:
        """The address of another host."""
        return f"{OTHERS}.{self.number}"

    @property
    def host(self) -> str:
        """The server's address."""
        return f"{SERVERS}.{self.number}"

    @property
    def server(self) -> str:
        """The server's address and port."""
        return f"{self.host}:{27016 if self.is_mongodb else FIRST_PORT + self.number}"

    @property
    def text(self) -> str:
        """What it is, in a sentence."""
        return (self.play.__doc__ or "").splitlines()[0]

    def capture(self, folder: Path) -> Path:
        """Where its recording is."""
        return folder / f"{self.name}.pcap.zst"

    def named(self, pairs: frozenset[Pair]) -> set[Pair]:
        """Rules and subjects with the addresses of this story."""
        also = f"[{self.also_at}]" if ":" in self.also_at else self.also_at
        also += f":{self.server.rpartition(':')[2]}"
        names = {"server": self.server, "also": also, "client": self.client, "another": self.another_client}
        return {(rule, subject.format_map(names)) for rule, subject in pairs}
