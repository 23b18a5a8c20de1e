"""How were the captures made? Plays scenarios with real brokers and clients while tcpdump records loopback.

`python -m tests.captures.record [NAME…]` writes `<name>.pcap`, `<name>.truth.json` and `<name>.counts.json`; without
names all scenarios. What only the rules need goes to `incidents/`, without counts. Exit code 2 when a tool is missing
or a name is unknown, 1 when a recording failed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import inspect
import shutil
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from tests.brokers.kafka010 import Kafka010
from tests.brokers.kafka4 import Kafka4
from tests.brokers.tcpdump import Tcpdump
from tests.captures.count import write_counts
from tests.captures.losses import lose
from tests.scenarios.java_client import class_path
from tests.scenarios.truth import LOGS, Truth

HERE = Path(__file__).parent
SCENARIOS = ("healthy", "stuck_commit", "stalled_lso", "old_format", "version_negotiation", "changing_hands")
INCIDENTS = (
    "lagging", "evicted", "faulty_writers", "stale_readers", "troubled_broker", "lossy", "refused", "hung",
    "broker_gone", "share_groups", "streams_group", "unsure_writers", "always_refused",
    "wrong_listener", "processes", "cut_off", "readers",
)  # fmt: skip
"""Scenarios that only the rules need: many incidents in one recording, each cluster with an id of its own."""
INCIDENTS_DIR = HERE / "incidents"
PORT = 9092
"""Kafka's usual port, so that a reader needs no option; two brokers differ by their loopback address."""

_TOOLS = {
    "java": "apt-get install openjdk-17-jre-headless",
    "mvn": "apt-get install maven",
    "tcpdump": "apt-get install tcpdump",
    "tshark": "apt-get install tshark",
}


def record(name: str, directory: Path = HERE) -> None:
    """Record one scenario into `directory`."""
    directory.mkdir(exist_ok=True)
    scenario = importlib.import_module(f"tests.scenarios.{name}")
    truth = Truth()
    target = directory / f"{name}.pcap"
    fresh = directory / f".{name}.recording.pcap"
    ports = [PORT, *getattr(scenario, "MORE_PORTS", ())]
    hosts = [*scenario.BROKERS.values(), *getattr(scenario, "MORE_HOSTS", ())]
    for version in getattr(scenario, "JAVA_VERSIONS", ("4.4.0",)):
        class_path(version)  # compile now, not while the scenario's clock runs
    with contextlib.ExitStack() as stack:
        stack.callback(fresh.unlink, missing_ok=True)
        brokers = {kind: _broker(kind, host, name, scenario) for kind, host in scenario.BROKERS.items()}
        for broker in brokers.values():
            stack.enter_context(broker)
        with Tcpdump(fresh, ports, buffer_kib=65_536, hosts=hosts) as capture:
            # A scenario that harms its broker asks for it.
            more = {"brokers": brokers} if "brokers" in inspect.signature(scenario.play).parameters else {}
            scenario.play({kind: b.bootstrap for kind, b in brokers.items()}, truth, capture.stop, **more)
        every = getattr(scenario, "LOSE_EVERY", None)
        if every is not None:
            fresh.write_bytes(lose(fresh.read_bytes(), every))
        fresh.rename(target)
        about: dict[str, Any] = {
            "scenario": name,
            "story": (scenario.__doc__ or "").splitlines()[0],
            "brokers": [
                {"software": "Apache Kafka", "version": b.version, "host": b.host, "port": b.port}
                for b in brokers.values()
            ],
        }
    without: tuple[str, ...] = ("produced", "consumed", *LOGS) if name in INCIDENTS else LOGS
    truth.write(directory / f"{name}.truth.json", about, capture.start_ms, capture.end_ms, without)
    if name not in INCIDENTS:
        write_counts(target, [PORT])


def _broker(kind: str, host: str, name: str, scenario: ModuleType) -> Kafka4 | Kafka010:
    if kind == "kafka010":
        return Kafka010(host, PORT)
    if name not in INCIDENTS:
        return Kafka4(host, PORT)
    cluster_id = base64.urlsafe_b64encode(hashlib.md5(name.encode()).digest()).decode().rstrip("=")  # noqa: S324
    return Kafka4(host, PORT, cluster_id=cluster_id, properties=getattr(scenario, "PROPERTIES", ""))


def main(names: list[str]) -> int:
    """Record the scenarios named, or all; return the exit code."""
    console = Console(stderr=True)
    problems = [f"{tool} is missing: {how}" for tool, how in _TOOLS.items() if shutil.which(tool) is None]
    problems += [
        f"unknown scenario {name!r}: choose from {', '.join((*SCENARIOS, *INCIDENTS))}"
        for name in names
        if name not in (*SCENARIOS, *INCIDENTS)
    ]
    problems += [f"port {PORT} of {host} is in use: stop what listens there" for host in _hosts_in_use(names)]
    for problem in problems:
        console.print(problem, style="red", markup=False)
    if problems:
        return 2
    for name in names or (*SCENARIOS, *INCIDENTS):
        directory = INCIDENTS_DIR if name in INCIDENTS else HERE
        with console.status(f"recording {name} …"):
            try:
                record(name, directory)
            except Exception as error:  # whatever a client raises ends this recording, with its reason
                console.print(f"{name}: {type(error).__name__}: {error}", style="red", markup=False)
                return 1
        size = (directory / f"{name}.pcap").stat().st_size
        console.print(f"{name}: {size / 1024:.0f} KiB", markup=False)
    return 0


def _hosts_in_use(names: list[str]) -> list[str]:
    """Addresses that the scenarios need and something else listens at."""
    wanted = [name for name in names or (*SCENARIOS, *INCIDENTS) if name in (*SCENARIOS, *INCIDENTS)]
    used = []
    for host in sorted(
        {h for name in wanted for h in importlib.import_module(f"tests.scenarios.{name}").BROKERS.values()}
    ):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, PORT))
            except OSError:
                used.append(host)
    return used


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
