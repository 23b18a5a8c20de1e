"""A cluster of two brokers, of which one goes away for half a minute with all that only it holds.

Both partitions of `parcels` and the only one of `__consumer_offsets` have their one replica there. `parcel-api` cannot
write, `tracking` cannot read; `billing` and `ledger` (Java), which read `invoices` on the broker that stays, lose their
coordinator. When it is back all of them continue by themselves. `invoice-api` notices nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.3.1"}
OTHER = "127.0.3.2"
MORE_HOSTS = (OTHER,)
_CONTROLLER = "127.0.3.1:9094"
PROPERTIES = f"""
controller.quorum.voters=1@{_CONTROLLER}
listeners=PLAINTEXT://{{host}}:{{port}},CONTROLLER://{_CONTROLLER}
"""
_OF_THE_OTHER = f"""
process.roles=broker
node.id=2
controller.quorum.voters=1@{_CONTROLLER}
listeners=PLAINTEXT://{{host}}:{{port}}
"""
LOST, KEPT = "parcels", "invoices"
AWAY_S = 26.0
FINDINGS = {
    ("coordinator_unavailable", "127.0.3.2:9092"),
    ("partition_unavailable", "parcels-0"),
}


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """Let one broker go and come back."""
    stays = brokers["kafka4"]
    bootstrap = bootstraps["kafka4"]
    with Kafka4(OTHER, stays.port, cluster_id=stays.cluster_id, properties=_OF_THE_OTHER) as other:
        create_topics(truth, bootstrap)
        often: dict[str, Any] = {"interval_s": 0.4, "message.timeout.ms": 60_000}
        with contextlib.ExitStack() as stack:
            stack.enter_context(rd.Sender(truth, bootstrap, "parcel-api", LOST, partitions=2, **often))
            stack.enter_context(rd.Sender(truth, bootstrap, "invoice-api", KEPT, partitions=1, **often))
            stack.enter_context(rd.GroupMember(truth, bootstrap, "tracking-1", "tracking", LOST, log_level=0))
            stack.enter_context(rd.GroupMember(truth, bootstrap, "billing-1", "billing", KEPT, log_level=0))
            java: dict[str, Any] = {"bootstrap": bootstrap, "topic": KEPT, "group": "ledger", "commit_ms": 1000}
            stack.enter_context(JavaClient(truth, "consume", client_id="ledger-1", **java))
            for client in ("tracking-1", "billing-1", "ledger-1"):
                truth.wait_for(3, client_id=client, kind="commit_ok")
            with other.down():
                truth.add("setup", "incident", error="broker 2 is gone")
                time.sleep(AWAY_S)
            seen = {
                c: len(truth.events(client_id=c, kind="commit_ok")) for c in ("tracking-1", "billing-1", "ledger-1")
            }
            for client, count in seen.items():
                truth.wait_for(count + 4, client_id=client, kind="commit_ok")
            capture_over()


def create_topics(truth: Truth, bootstrap: str) -> None:
    """Of each topic one replica: on broker 2 what will be gone, on broker 1 what stays."""
    truth.client("setup", rd.LIBRARY, "Python", rd.VERSION)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    topics = [
        NewTopic(LOST, 2, replica_assignment=[[2], [2]]),
        NewTopic(KEPT, 1, replica_assignment=[[1]]),
        NewTopic("__consumer_offsets", 1, replica_assignment=[[2]], config={"cleanup.policy": "compact"}),
    ]
    for done in admin.create_topics(topics).values():
        done.result(30)
