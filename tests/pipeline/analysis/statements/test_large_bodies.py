"""Of a large response that states names alone, only what names them is parsed; what it states stays the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pyarrow as pa
import pytest

from decoder.fields import parsed
from decoder.kafka.extractors.exchanges import cluster_addresses, cluster_id, topic_ids
from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.statements.exchanges import KafkaStatements, placed
from pipeline.tables import EXCHANGES_WITH_BODIES, STATE_EVENTS
from tests.pipeline.rows import T0, arrow, row

METADATA = 3
PARTITIONS = [{"partitionIndex": p, "leaderId": 1, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2]} for p in range(100)]


def topic(number: int, **more: Any) -> dict[str, Any]:
    return {"errorCode": 0, "name": f"t{number}", "topicId": f"id{number}", "partitions": PARTITIONS, **more}


WHOLE = {
    "throttleTimeMs": 0,
    "brokers": [{"nodeId": 1, "host": "10.0.0.1", "port": 9092}, {"nodeId": 2, "host": "fd00::1", "port": 9093}],
    "clusterId": "cluster",
    "topics": [topic(n) for n in range(20)],
}
ODD = {
    "brokers": [7, {"host": 5, "port": "x"}, {"host": "10.0.0.2", "port": 1}],
    "clusterId": "cluster",
    "topics": [topic(1, name=None), topic(2, topicId=9), topic(3, errorCode=None), topic(4, errorCode="0"), None, [],
               "t", {"partitions": PARTITIONS}, topic(5, errorCode=3), *(topic(n) for n in range(6, 20))],
}  # fmt: skip
LYING = {"brokers": {"host": "10.0.0.1"}, "clusterId": 5, "topics": {"name": "t"}, "rest": [PARTITIONS] * 20}
SMALL = {**WHOLE, "topics": [topic(n) for n in range(2)]}


def exchanges(*bodies: str) -> pa.Table:
    return arrow(
        EXCHANGES_WITH_BODIES,
        [
            row(EXCHANGES_WITH_BODIES, exchange_id=f"e{n}", api_key=METADATA, api_version=12, response_body=body,
                request_body="{}",
                server_ip="10.0.0.9", server_port=9092)
            for n, body in enumerate(bodies)
        ],
    )  # fmt: skip


@pytest.mark.parametrize("body", [WHOLE, ODD, LYING, SMALL], ids=["whole", "odd", "lying", "small"])
def test_it_states_what_its_whole_body_states(body: dict[str, Any]) -> None:
    found = KafkaStatements.of(exchanges(orjson.dumps(body).decode())).facts()
    assert {(one.topic_id, one.topic) for one in found if one.topic_id} == {
        (one.topic_id, one.topic) for one in topic_ids(METADATA, body)
    }
    id_ = cluster_id(METADATA, body)
    assert len({one.server for one in found if one.topic_id is None}) == (
        0 if id_ is None else 1 + len(cluster_addresses(METADATA, body))
    )


def test_partitions_of_a_large_body_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(text: str | bytes | None) -> dict[str, Any]:
        sizes.append(len(text or ""))
        return parsed(text)

    monkeypatch.setattr("pipeline.analysis.statements.kafka.parsed", counted)
    large, small = (orjson.dumps(body).decode() for body in (WHOLE, SMALL))
    KafkaStatements.of(exchanges(large, small))
    assert len(large) > 100_000
    assert max(sizes) == len(small) < 65_536
    assert sorted(sizes)[-2] < 3_000


def test_a_large_body_that_is_no_json_states_nothing() -> None:
    assert KafkaStatements.of(exchanges(orjson.dumps(WHOLE).decode()[:-1])).facts() == []


def test_rows_without_a_server_have_no_cluster() -> None:
    times = [T0, T0, T0 + timedelta(days=1)]
    rows = [row(STATE_EVENTS, server=server, ts=ts, topic="t") for server in ("10.0.0.9:9092", None) for ts in times]
    catalog = ClusterCatalog().merged([Fact("10.0.0.9:9092", "c", None, None, 0, 2**60)])
    assert placed(arrow(STATE_EVENTS, rows), catalog).column("cluster").to_pylist() == ["c"] * 3 + [None] * 3
    assert placed(arrow(STATE_EVENTS), catalog).num_rows == 0
