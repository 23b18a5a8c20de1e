"""How were MongoDB's captures made? Plays the shop with a real server and pymongo while tcpdump records loopback.

`python -m tests.captures.mongodb.record [NAME…]` writes `<name>.pcap` and `<name>.truth.json`; without names all.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pymongo

from tests.brokers.change_streams import ChangeStreams
from tests.brokers.ferretdb import FerretDB
from tests.brokers.mongo_java_server import MongoJavaServer
from tests.brokers.mongodb_proxy import MongodbProxy
from tests.brokers.process import free_ports
from tests.brokers.tcpdump import Tcpdump
from tests.scenarios import lost_streams, old_mongodb, troubled_mongodb
from tests.scenarios.mongodb import Truth, old_opcodes, play

HERE = Path(__file__).parent
RECORDINGS: dict[str, str | None] = {"plain": None, "proxied": None, "snappy": "snappy", "zlib": "zlib", "zstd": "zstd"}
"""What is spoken between the client and what it takes for the server, by compressor; `plain`: with FerretDB itself."""
TROUBLED = "troubled_mongodb"
"""With FerretDB itself, at an address of its own."""
STREAMS = "lost_streams"
"""With FerretDB behind a proxy that keeps change streams, at an address of its own."""
NAMES = (*RECORDINGS, TROUBLED, STREAMS)
"""By pymongo."""
OLD = "old_opcodes"
"""With mongo-java-server, by a plain socket."""
ALL = (*NAMES, OLD)


def record(name: str, directory: Path = HERE, port: int = 27017) -> None:
    """Record one capture into `directory`; the client's port is `port`."""
    compressor, truth = RECORDINGS.get(name), Truth()
    fresh = directory / f".{name}.recording.pcap"
    with contextlib.ExitStack() as stack:
        stack.callback(fresh.unlink, missing_ok=True)
        server: FerretDB | MongoJavaServer
        if name == OLD:
            server = stack.enter_context(MongoJavaServer("127.0.0.1", port))
        elif name in ("plain", TROUBLED):
            server = stack.enter_context(FerretDB(troubled_mongodb.HOST if name == TROUBLED else "127.0.0.1", port))
        elif name == STREAMS:
            server = stack.enter_context(FerretDB("127.0.0.1", free_ports(1)[0]))
            stack.enter_context(ChangeStreams(lost_streams.HOST, port, server.port, lost_streams.KEPT))
        else:
            server = stack.enter_context(FerretDB("127.0.0.1", free_ports(1)[0]))
            stack.enter_context(MongodbProxy("127.0.0.1", port, server.port, compressor))
        with Tcpdump(fresh, [port], hosts=[lost_streams.HOST] if name == STREAMS else []) as capture:
            if isinstance(server, MongoJavaServer):
                old_mongodb.play(server.host, port, truth)
            elif name == TROUBLED:
                troubled_mongodb.play(server.host, port, truth, server.frozen)
            elif name == STREAMS:
                lost_streams.play(lost_streams.HOST, port, truth)
            else:
                play("127.0.0.1", port, truth, compressor, is_proxied=name != "plain")
            if name == "plain":
                old_opcodes("127.0.0.1", port, truth)
            capture.stop()
        fresh.rename(directory / f"{name}.pcap")
    about = {
        "scenario": name, "server": f"{type(server).__name__} {server.version}",
        "client": "plain socket" if name == OLD else f"pymongo {pymongo.version}",
        "capture_start_ms": capture.start_ms, "capture_end_ms": capture.end_ms,
    }  # fmt: skip
    truth.write(directory / f"{name}.truth.json", about)


def main(names: list[str]) -> int:
    """Record what is named, or all; return the exit code."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.stderr.write(f"unknown: {', '.join(unknown)}; choose from {', '.join(ALL)}\n")
        return 2
    for name in names or ALL:
        record(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
