"""Healthy: two Connect workers with a source and a sink of two tasks, which commits each 60 s, as Connect does."""

from __future__ import annotations

import json
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.brokers.process import free_ports
from tests.scenarios import rhythm
from tests.scenarios.java_client import NEWEST
from tests.scenarios.java_program import Program, compiled
from tests.scenarios.rhythm import Clock, Writer
from tests.scenarios.truth import Truth

TOPICS = {"ticks": 2, "deliveries": 2}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
_WORKER = """\
bootstrap.servers={bootstrap}
group.id=connect-workers
client.id={client_id}
listeners=HTTP://127.0.0.1:{port}
plugin.discovery=only_scan
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
"""
_INTERNAL = """\
{kind}.storage.topic=connect-{kind}
{kind}.storage.replication.factor=1
"""
_CONNECTORS: dict[str, dict[str, Any]] = {
    "ticks": {"connector.class": "Ticks", "tasks.max": "1", "to": "ticks"},
    "drain": {"connector.class": "Drain", "tasks.max": "2", "topics": "deliveries,ticks"},
}


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """The second worker comes after three minutes; tasks move to it."""
    class_path = compiled("kafka_connect", "Ticks", "Drain")
    rhythm.create_topics(truth, bootstrap, TOPICS)
    ports = free_ports(2)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="connect-")))
        writer = Writer(
            truth, bootstrap, "deliveries-app", "deliveries", clock=clock, partitions=2, rate=rhythm.steadily(3)
        )
        stack.enter_context(writer)

        def start(number: int) -> None:
            client_id = f"worker-{number}"
            truth.client(client_id, "connect-runtime", "Java", NEWEST)
            text = _WORKER.format(bootstrap=bootstrap, client_id=client_id, port=ports[number])
            text += "".join(_INTERNAL.format(kind=kind) for kind in ("offset", "config", "status"))
            file = folder / f"{client_id}.properties"
            file.write_text(text)
            main = "org.apache.kafka.connect.cli.ConnectDistributed"
            stack.enter_context(Program(class_path, main, str(file), by_signal=True))

        start(0)
        for name, settings in _CONNECTORS.items():
            _put(ports[0], name, settings)
        clock.until(180)
        start(1)
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, TOPICS, {"connect-drain": "deliveries"})


def _put(port: int, name: str, settings: dict[str, Any]) -> None:
    """Make a connector, as soon as the worker listens."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/{name}/config", json.dumps(settings).encode(),
        {"Content-Type": "application/json"}, method="PUT",
    )  # fmt: skip
    for _ in range(60):
        try:
            urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
            return
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise RuntimeError(error.read().decode()) from error
        except urllib.error.URLError:
            pass
        time.sleep(1)
    raise TimeoutError("Connect's worker does not listen")
