"""How were the recordings of connections made? Plays stories with real servers and clients while tcpdump records.

`python -m tests.captures.connections.record [NAME…]` writes `<name>.pcap.zst`; without names all, in about four
minutes. All happens in a network namespace of its own, so that its packet filter touches nothing else. Needs root,
Java 17+, Maven, openssl, nftables, iproute2, tcpdump and zstd. Exit code 2 when a tool is missing or a name is unknown,
1 when a recording failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.ferretdb import build
from tests.brokers.kafka4 import Kafka4
from tests.brokers.maven import broker_libs
from tests.brokers.tcpdump import Tcpdump
from tests.captures.connections import listeners, network
from tests.captures.connections.clients import BULK, LARGE, SLOW, TOPIC, fill
from tests.captures.connections.sick import OLD
from tests.captures.connections.stories import STORIES
from tests.captures.connections.story import Stage, Story
from tests.scenarios.java_client import class_path

HERE = Path(__file__).parent
_TOOLS = ("java", "mvn", "openssl", "nft", "ip", "mount", "ss", "unshare", "tcpdump", "zstd")
_AT_ONCE = 6


def main(names: list[str]) -> int:
    """Record what is named, or all; return the exit code."""
    known = {one.name: one for one in STORIES}
    problems = [f"{tool} is missing" for tool in _TOOLS if shutil.which(tool) is None]
    problems += [f"unknown: {name}; choose from {', '.join(known)}" for name in names if name not in known]
    if problems:
        sys.stderr.write("\n".join(problems) + "\n")
        return 2
    for version in ("4.4.0", OLD):
        class_path(version)  # what is fetched, is fetched before the network is gone
    broker_libs("kafka4")
    build()
    code = network.inside(__spec__.name, names)
    return _record([known[name] for name in names] or list(STORIES)) if code is None else code


def _record(stories: Sequence[Story]) -> int:
    for one in stories:
        network.comes_from(one.client, one.host)
        network.also_comes_from(one.another_client, one.host)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listeners.certify(folder, [one.host for one in stories])
        listeners.authority(folder, "other")
        with listeners.broker(stories, folder) as broker:
            _fill(broker)
            together = sorted((one for one in stories if not one.is_alone), key=lambda one: "idle" not in one.name)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                done = list(pool.map(lambda one: _one(one, folder, broker), together))
            done += [_one(one, folder, broker) for one in stories if one.is_alone]
    return 0 if all(done) else 1


def _fill(broker: Kafka4) -> None:
    """Topics to write to, one of 300 KB, and one of large records."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in (TOPIC, BULK, LARGE, SLOW)]).values():
        made.result(30)
    fill(broker.bootstrap, BULK, 100)
    fill(broker.bootstrap, LARGE, 5, 150_000)


def _one(story: Story, folder: Path, broker: Kafka4) -> bool:
    fresh = folder / f"{story.name}.pcap"
    stage = Stage(story.server, story.client, story.another_client, folder, broker)
    try:
        with Tcpdump(fresh, [stage.port], 16_384, [stage.host, *filter(None, [story.also_at])]):
            story.play(stage)
    except Exception:
        sys.stderr.write(f"{story.name}: {traceback.format_exc()}\n")
        return False
    target = story.capture(HERE)
    subprocess.run(["zstd", "-q", "-f", "-19", str(fresh), "-o", str(target)], check=True)
    sys.stderr.write(f"{story.name}: {target.stat().st_size / 1024:.0f} KiB\n")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
