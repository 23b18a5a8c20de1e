"""How were the captures made? Plays scenarios with real brokers and clients while tcpdump records loopback.

`python -m tests.captures.record [NAME…]` writes `<name>.pcap`, `<name>.truth.json` and `<name>.counts.json`; without
names all scenarios. Exit code 2 when a tool is missing or a name is unknown, 1 when a recording failed.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.brokers.kafka010 import Kafka010
from tests.brokers.kafka4 import Kafka4
from tests.brokers.tcpdump import Tcpdump
from tests.captures.count import write_counts
from tests.scenarios.java_client import class_path
from tests.scenarios.truth import Truth

HERE = Path(__file__).parent
SCENARIOS = ("healthy", "stuck_commit", "stalled_lso", "old_format", "version_negotiation", "changing_hands")
PORT = 9092
"""Kafka's usual port, so that a reader needs no option; two brokers differ by their loopback address."""

_TOOLS = {
    "java": "apt-get install openjdk-17-jre-headless",
    "mvn": "apt-get install maven",
    "tcpdump": "apt-get install tcpdump",
    "tshark": "apt-get install tshark",
}
_KINDS: dict[str, type[Kafka4] | type[Kafka010]] = {"kafka4": Kafka4, "kafka010": Kafka010}


def record(name: str, directory: Path = HERE) -> None:
    """Record one scenario into `directory`."""
    scenario = importlib.import_module(f"tests.scenarios.{name}")
    truth = Truth()
    target = directory / f"{name}.pcap"
    fresh = directory / f".{name}.recording.pcap"
    for version in getattr(scenario, "JAVA_VERSIONS", ("4.4.0",)):
        class_path(version)  # compile now, not while the scenario's clock runs
    with contextlib.ExitStack() as stack:
        stack.callback(fresh.unlink, missing_ok=True)
        brokers: dict[str, Kafka4 | Kafka010] = {
            kind: _KINDS[kind](host, PORT) for kind, host in scenario.BROKERS.items()
        }
        for broker in brokers.values():
            stack.enter_context(broker)
        with Tcpdump(fresh, [PORT]) as capture:
            scenario.play({kind: b.bootstrap for kind, b in brokers.items()}, truth, capture.stop)
        fresh.rename(target)
        about: dict[str, Any] = {
            "scenario": name,
            "story": (scenario.__doc__ or "").splitlines()[0],
            "brokers": [
                {"software": "Apache Kafka", "version": b.version, "host": b.host, "port": b.port}
                for b in brokers.values()
            ],
        }
    truth.write(directory / f"{name}.truth.json", about, capture.start_ms, capture.end_ms)
    write_counts(target, [PORT])


def main(names: list[str]) -> int:
    """Record the scenarios named, or all; return the exit code."""
    console = Console(stderr=True)
    problems = [f"{tool} is missing: {how}" for tool, how in _TOOLS.items() if shutil.which(tool) is None]
    problems += [
        f"unknown scenario {name!r}: choose from {', '.join(SCENARIOS)}" for name in names if name not in SCENARIOS
    ]
    problems += [f"port {PORT} of {host} is in use: stop what listens there" for host in _hosts_in_use()]
    for problem in problems:
        console.print(problem, style="red", markup=False)
    if problems:
        return 2
    for name in names or SCENARIOS:
        with console.status(f"recording {name} …"):
            try:
                record(name)
            except Exception as error:  # whatever a client raises ends this recording, with its reason
                console.print(f"{name}: {type(error).__name__}: {error}", style="red", markup=False)
                return 1
        size = (HERE / f"{name}.pcap").stat().st_size
        console.print(f"{name}: {size / 1024:.0f} KiB", markup=False)
    return 0


def _hosts_in_use() -> list[str]:
    used = []
    for host in ("127.0.0.1", "127.0.0.2"):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, PORT))
            except OSError:
                used.append(host)
    return used


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
