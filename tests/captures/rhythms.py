"""Records traffic at real rhythms: scenarios of ten minutes, played side by side, each at an address of its own.

`python -m tests.captures.rhythms [NAME…]` writes `rhythms/<name>.pcap.zst` and `<name>.truth.json` as each ends;
without names all. One broker serves all: it listens once for each, and tells each its own address (and port, as Kafka
demands), so that tcpdump can tell them apart. `--try` plays twenty times as fast and keeps nothing but what went wrong.
Exit code 2 on unknown names, 1 when a recording failed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.brokers.ferretdb import FerretDB
from tests.brokers.kafka4 import Kafka4
from tests.brokers.kafka4_cluster import Kafka4Cluster
from tests.brokers.maven import MavenError
from tests.brokers.mongodb_proxy import MongodbProxy
from tests.brokers.tcpdump import Tcpdump
from tests.captures.losses import lose
from tests.captures.places import KAFKA, OWN, Place, own_place
from tests.scenarios.java_client import class_path
from tests.scenarios.programs import ToolMissingError
from tests.scenarios.rhythm import Clock
from tests.scenarios.truth import LOGS, Truth

HERE = Path(__file__).parent / "rhythms"
FIRST_PORT = 9092
SCENARIOS = {
    "healthy_rhythms": "healthy_rhythms.play",
    "healthy_java": "healthy_java.play",
    "healthy_bursts": "healthy_bursts.play",
    "healthy_jobs": "healthy_jobs.play",
    "healthy_eager": "healthy_deploy.play_eager",
    "healthy_cooperative": "healthy_deploy.play_cooperative",
    "healthy_kip848": "healthy_deploy.play_kip848",
    "healthy_scaling": "healthy_deploy.play_scaling",
    "healthy_idle": "healthy_idle.play",
    "healthy_transactions": "healthy_transactions.play",
    "healthy_retention": "healthy_retention.play",
    "healthy_streams": "healthy_streams.play",
    "healthy_connect": "healthy_connect.play",
    "healthy_operations": "healthy_operations.play",
    "healthy_aiokafka": "healthy_aiokafka.play",
    "healthy_restarts": "healthy_restarts.play",
    "healthy_mongodb": "healthy_mongodb.play",
    "healthy_change_streams": "healthy_change_streams.play",
    "healthy_sarama": "clients.sarama.play_well",
    "healthy_go": "clients.native.play_go",
    "healthy_node_and_rust": "clients.native.play_node_and_rust",
    "healthy_jvm": "clients.jvm.play_well",
    "healthy_mirror_maker": "clients.mirror_maker.play_well",
    "healthy_node_mongodb": "clients.node_mongodb.play_well",
    "sick_members": "sick_members.play",
    "sick_progress_1s": "sick_progress.play_1s",
    "sick_progress_30s": "sick_progress.play_30s",
    "sick_commit_1s": "sick_commit.play_1s",
    "sick_commit_30s": "sick_commit.play_30s",
    "sick_transaction_1s": "sick_transaction.play_1s",
    "sick_transaction_30s": "sick_transaction.play_30s",
    "sick_work_1s": "sick_work.play_1s",
    "sick_work_30s": "sick_work.play_30s",
    "sick_positions_1s": "sick_positions.play_1s",
    "sick_positions_30s": "sick_positions.play_30s",
    "sick_share_1s": "sick_share.play_1s",
    "sick_share_30s": "sick_share.play_30s",
    "sick_refused_1s": "sick_refused.play_1s",
    "sick_refused_30s": "sick_refused.play_30s",
    "sick_writers_30s": "sick_writers.play_30s",
    "sick_cluster_30s": "sick_cluster.play_30s",
    "sick_mongodb_30s": "sick_mongodb.play_30s",
    "sick_metadata_1s": "sick_metadata.play_1s",
    "sick_metadata_30s": "sick_metadata.play_30s",
    "sick_batches_1s": "sick_batches.play_1s",
    "sick_batches_30s": "sick_batches.play_30s",
    "sick_old_clients_30s": "sick_old_clients.play_30s",
    "sick_retries_30s": "sick_retries.play_30s",
    "sick_capture_30s": "sick_capture.play_30s",
    "sick_sarama_1s": "clients.sarama.play_1s",
    "sick_sarama_30s": "clients.sarama.play_30s",
    "sick_native_1s": "clients.native.play_1s",
    "sick_native_30s": "clients.native.play_30s",
    "sick_jvm_1s": "clients.jvm.play_1s",
    "sick_jvm_30s": "clients.jvm.play_30s",
    "sick_node_mongodb": "clients.node_mongodb.play_sick",
    "sick_mirror_maker": "clients.mirror_maker.play_sick",
}
"""Recordings, and who plays them: a function of `tests.scenarios`."""
CLUSTERED = {"healthy_restarts"}
WITH_MONGODB = {"healthy_mongodb"}
_CLUSTER_HOSTS = ("127.0.4.201", "127.0.4.202", "127.0.4.203")
_MONGODB_HOST = "127.0.4.211"
WITHOUT = (
    *("produced", "consumed", "commit_ok", "txn_begin", "txn_commit", "assigned", "revoked", "request_answered"),
    "accepted",
)
"""What clients log too often to be kept."""

_PROPERTIES = """\
group.initial.rebalance.delay.ms=3000
num.network.threads=2
num.io.threads=4
log.cleaner.enable=true
log.cleaner.backoff.ms=5000
log.retention.check.interval.ms=10000
transaction.state.log.num.partitions=4
offsets.topic.num.partitions=8
inter.broker.listener.name=R0
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}
listeners=CONTROLLER://127.0.0.1:{{controller_port}},{listeners}
advertised.listeners={listeners}
"""


def address_of(number: int) -> tuple[str, int]:
    """Host and port of the scenario that was named as the `number`-th."""
    return f"127.0.4.{number + 1}", FIRST_PORT + number


@contextmanager
def shared_broker(addresses: list[tuple[str, int]]) -> Iterator[Kafka4]:
    """A broker that listens at all `addresses`, and tells clients of each only of that one."""
    listeners = ",".join(f"R{number}://{host}:{port}" for number, (host, port) in enumerate(addresses))
    protocols = ",".join(f"R{number}:PLAINTEXT" for number in range(len(addresses)))
    properties = _PROPERTIES.format(listeners=listeners, protocols=protocols)
    with Kafka4(*addresses[0], properties=properties) as broker:
        yield broker


def module_of(name: str) -> str:
    """The module of `tests.scenarios` that plays a recording."""
    return SCENARIOS[name].rpartition(".")[0]


def has_own_servers(name: str) -> bool:
    """Whether it needs other servers than the broker that is shared."""
    return module_of(name) in OWN or name in CLUSTERED | WITH_MONGODB


def played_by(name: str) -> tuple[Any, Callable[..., None]]:
    """The module and the function that play a recording."""
    module, _, function = SCENARIOS[name].rpartition(".")
    scenario = importlib.import_module(f"tests.scenarios.{module}")
    return scenario, getattr(scenario, function)


@contextmanager
def place_of(name: str, number: int) -> Iterator[Place]:
    """The servers of a scenario: its own, or its address at the broker that is shared."""
    if has_own_servers(name):
        with own_place(name, module_of(name), number) as place:
            yield place
    elif name in CLUSTERED:
        with Kafka4Cluster(list(_CLUSTER_HOSTS), FIRST_PORT) as cluster:
            yield Place(_CLUSTER_HOSTS, FIRST_PORT, cluster.bootstrap, KAFKA, Kafka4.version, {"cluster": cluster})
    elif name in WITH_MONGODB:
        with FerretDB() as server, MongodbProxy(_MONGODB_HOST, 27017, server.port, "zstd"):
            yield Place((_MONGODB_HOST,), 27017, f"{_MONGODB_HOST}:27017", "FerretDB behind a proxy", server.version)
    else:
        host, port = address_of(number)
        yield Place((host,), port, f"{host}:{port}", KAFKA, Kafka4.version)


def story_of(name: str) -> str:
    """What a recording is, in a sentence."""
    scenario, play = played_by(name)
    about = scenario.__doc__ if play.__name__ == "play" else play.__doc__
    return (about or "").splitlines()[0]


def record(name: str, place: Place, pace: float, into: Path, *, with_logs: bool = False) -> None:
    """Play one scenario while it is recorded; compress what came."""
    scenario, play = played_by(name)
    truth = Truth()
    fresh = into / f".{name}.recording.pcap"
    try:
        with Tcpdump(fresh, [place.port], 16_384, place.hosts) as capture:
            play(place.servers, truth, Clock(pace), **place.more)
        if hasattr(scenario, "LOSE_EVERY"):
            fresh.write_bytes(lose(fresh.read_bytes(), scenario.LOSE_EVERY, _when_ill(truth)))
        target = into / f"{name}.pcap.zst"
        subprocess.run(["zstd", "-q", "-f", "-19", "--long=24", str(fresh), "-o", str(target)], check=True)
    finally:
        fresh.unlink(missing_ok=True)
    about = {
        "scenario": name,
        "story": story_of(name),
        "brokers": [
            {"software": place.software, "version": place.version, "host": host, "port": place.port}
            for host in place.hosts
        ],
    }
    without = WITHOUT if with_logs else (*WITHOUT, *LOGS)
    truth.write(into / f"{name}.truth.json", about, capture.start_ms, capture.end_ms, without)


def _when_ill(truth: Truth) -> list[tuple[float, float]]:
    """From when to when the recorder is, seconds since the epoch."""
    begins, ends = ([e["ts_ms"] / 1000 for e in truth.events(kind=kind)] for kind in ("incident", "healed"))
    return list(zip(begins, ends, strict=True))


def record_all(names: list[str], pace: float, into: Path, first: int = 0, *, with_logs: bool = False) -> list[str]:
    """Record scenarios side by side; return the names of those that failed.

    Args:
        names: of SCENARIOS.
        pace: how many times as fast as in production.
        into: the folder for captures and truths.
        first: which address is the first.
        with_logs: keep what the libraries log in the truths.
    """
    failed: list[str] = []

    def run(name: str, number: int) -> None:
        try:
            with place_of(name, number) as place:
                record(name, place, pace, into, with_logs=with_logs)
            print(f"{name}: {(into / f'{name}.pcap.zst').stat().st_size / 1024:.0f} KiB", flush=True)
        except Exception:  # whatever a client raises ends this recording, not the others
            traceback.print_exc()
            failed.append(name)

    class_path()  # compile now, not while the clock runs
    names = [name for name in names if _is_built(name)]
    numbers = {name: number for number, name in enumerate(names, first)}
    shared = [address_of(number) for name, number in numbers.items() if not has_own_servers(name)]
    with shared_broker(shared) if shared else nullcontext():
        threads = [threading.Thread(target=run, args=each) for each in numbers.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return failed


def _is_built(name: str) -> bool:
    """Build the programs of a scenario; without the tools for them it is skipped, which a sentence says."""
    try:
        getattr(played_by(name)[0], "build", bool)()
    except (ToolMissingError, MavenError) as missing:
        print(f"{name}: skipped. {missing}", flush=True)
        return False
    return True


def main(arguments: list[str]) -> int:
    """Record what is named; return the exit code."""
    parser = argparse.ArgumentParser(description="Record traffic at real rhythms.")
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []], metavar="NAME")
    parser.add_argument("--try", dest="tries", action="store_true", help="twenty times as fast, and keep nothing")
    parser.add_argument("--first", type=int, default=0, help="which address is the first, when another of us records")
    options = parser.parse_args(arguments)
    names = list(options.names) or list(SCENARIOS)
    if not options.tries:
        HERE.mkdir(exist_ok=True)
        return 1 if record_all(names, 1.0, HERE, options.first) else 0
    with tempfile.TemporaryDirectory() as folder:
        return 1 if record_all(names, 20.0, Path(folder), options.first) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
