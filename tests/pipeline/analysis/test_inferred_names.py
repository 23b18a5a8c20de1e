"""A topic id that no message joins with a name has the name whose offsets are equal; in doubt it has none."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.analysis.derive import derive, findings_of
from pipeline.analysis.inferred_names import inferred_names
from pipeline.analysis.statements.exchanges import KafkaStatements
from pipeline.analysis.statements.kafka import PARTS
from pipeline.commands.findings import what_was_looked_at
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded, diagnose
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.tables import EXCHANGES_WITH_BODIES, OFFSET_EVENTS
from tests.paths import CAPTURES
from tests.pipeline.rows import T0, arrow, row

ME = {"cluster": "C", "client_id": "app", "client": "10.0.0.1:4000"}


def fetched(topic_id: str, offset: int, at: float = 0, partition: int = 0, **values: Any) -> dict[str, Any]:
    known = {**ME, "kind": "fetched", "offset": offset, "high_watermark": offset, "partition": partition, **values}
    return row(OFFSET_EVENTS, topic=None, topic_id=topic_id, ts=T0 + timedelta(seconds=at), **known)


def committed(topic: str, offset: int, at: float = 0, partition: int = 0, **values: Any) -> dict[str, Any]:
    known = {**ME, "kind": "committed", "offset": offset, "partition": partition, **values}
    return row(OFFSET_EVENTS, topic=topic, ts=T0 + timedelta(seconds=at), **known)


def produced(topic: str, end: int, at: float = 0) -> dict[str, Any]:
    known = {"cluster": "C", "client_id": "writer", "kind": "produced", "next_offset": end, "partition": 0}
    return row(OFFSET_EVENTS, topic=topic, ts=T0 + timedelta(seconds=at), **known)


def names(*rows: dict[str, Any], catalog: ClusterCatalog | None = None) -> dict[str, str]:
    return _inferred(arrow(OFFSET_EVENTS, rows), exchanges_of(), catalog)


def _inferred(events: pa.Table, beats: pa.Table, catalog: ClusterCatalog | None) -> dict[str, str]:
    subscriptions = KafkaStatements.of(beats).subscriptions()
    found = inferred_names(events, subscriptions, catalog or ClusterCatalog())
    assert all(seen.is_inferred for seen in found.values())
    return {topic_id: seen.value for (_, topic_id), seen in found.items()}


def test_a_client_commits_what_it_fetched() -> None:
    reads = [fetched("id", offset, offset) for offset in (7, 9, 12)]
    commits = [committed("orders", offset, offset + 1, client="10.0.0.1:4001") for offset in (9, 12)]
    assert names(*reads, *commits) == {"id": "orders"}
    assert names(*reads, commits[0]) == {}, "one offset may be equal by chance"
    assert names(*reads, *({**one, "client": "10.0.0.2:4000"} for one in commits)) == {}, "it is another client's"
    assert names(*reads, *({**one, "error_code": 25} for one in commits)) == {}
    assert names(*reads, *({**one, "partition": 1} for one in commits)) == {}
    assert names(*reads, *({**one, "cluster": "D"} for one in commits)) == {}


def test_a_log_ends_where_the_last_record_was_written() -> None:
    reads = [fetched("id", 0, at, high_watermark=end) for at, end in ((1, 40), (2, 44))]
    assert names(*reads, produced("orders", 40, 1), produced("orders", 44, 2)) == {"id": "orders"}
    assert names(*reads, produced("orders", 40, 60), produced("orders", 44, 61)) == {}, "it ended there long before"


def test_two_that_have_the_same_offsets_are_in_doubt() -> None:
    reads = [fetched(topic_id, offset, offset) for offset in (7, 9) for topic_id in ("a", "b")]
    commits = [committed("orders", offset, offset) for offset in (7, 9)]
    assert names(*reads, *commits) == {}
    more = [one for offset in range(20, 40) for one in (fetched("a", offset, offset), committed("orders", offset))]
    assert names(*reads, *commits, *more) == {"a": "orders"}


def test_a_name_that_another_id_has_is_not_given_again() -> None:
    rows = [one for offset in (7, 9) for one in (fetched("id", offset), committed("orders", offset))]
    stated = ClusterCatalog(topics={("C", "old"): Seen("orders", 0, 0)})
    assert names(*rows, catalog=stated) == {}
    assert names(*rows, catalog=ClusterCatalog(topics={("D", "old"): Seen("orders", 0, 0)})) == {"id": "orders"}


def test_what_is_stated_replaces_what_was_inferred() -> None:
    inferred = ClusterCatalog().with_inferred({("C", "id"): Seen("orders", 5, 9, is_inferred=True)})
    stated = ClusterCatalog(topics={("C", "id"): Seen("bills", 7, 8)})
    (seen,) = stated.with_inferred(inferred.topics).topics.values()
    assert (seen.value, seen.first_us, seen.last_us, seen.is_inferred) == ("bills", 5, 9, False)


def beat(
    at: float, subscribed: list[str] | None = None, given: list[str] | None = None, **values: Any
) -> dict[str, Any]:
    """A heartbeat of a member of the consumer protocol."""
    asked = {"groupId": "g", "memberId": values.pop("member", "m"), "subscribedTopicNames": subscribed}
    parts = None if given is None else {"topicPartitions": [{"topicId": one, "partitions": [0]} for one in given]}
    answer = {"errorCode": values.pop("code", 0), "memberId": asked["memberId"], "assignment": parts}
    regex = {"subscribedTopicRegex": values.pop("regex", None)}
    ts = T0 + timedelta(seconds=at)
    return row(
        EXCHANGES_WITH_BODIES, exchange_id=f"e{at}", protocol="kafka", api_key=68, api_version=1, ts=ts, request_ts=ts,
        response_ts=ts, server_ip="k", server_port=9092, client_ip="10.0.0.1", client_port=4000,
        request_body=json.dumps({**asked, **regex}), response_body=json.dumps(answer), **values,
    )  # fmt: skip


def exchanges_of(*beats: dict[str, Any]) -> pa.Table:
    return arrow(EXCHANGES_WITH_BODIES, beats)


def by_beats(*beats: dict[str, Any], catalog: ClusterCatalog | None = None) -> dict[str, str]:
    return _inferred(arrow(OFFSET_EVENTS, []), exchanges_of(*beats), catalog)


STATED = ClusterCatalog(topics={("k:9092", "b-id"): Seen("b", 0, 0)})


def test_the_one_name_of_a_member_is_that_of_the_one_id_it_is_given() -> None:
    assert by_beats(beat(1, ["a"], ["id"])) == {"id": "a"}
    assert by_beats(beat(1, ["a"]), beat(2, None, ["id"])) == {"id": "a"}, "it is given partitions later"
    assert by_beats(beat(1, ["a"]), beat(2, None, ["id"], member="other")) == {}
    assert by_beats(beat(1, None, ["id"]), beat(2, ["a"])) == {}, "it was given for what was subscribed before"
    assert by_beats(beat(1, ["a"], ["id"], code=25)) == {}
    assert by_beats(beat(1, ["a"], ["id"], regex="a.*")) == {}
    assert by_beats(beat(1, ["a"], [])) == {}


def test_several_names_are_left_open_but_for_the_last_without_an_id() -> None:
    assert by_beats(beat(1, ["a", "b"], ["id"])) == {}
    assert by_beats(beat(1, ["a", "b"], ["id", "b-id"])) == {}
    assert by_beats(beat(1, ["a", "b"], ["id", "b-id"]), catalog=STATED) == {"id": "a"}
    assert by_beats(beat(1, ["a", "b"], ["id"]), catalog=STATED) == {}, "b may have been recreated"
    beats = beat(1, ["a"], ["id"], member="one"), beat(2, ["a", "c"], ["id", "other"], member="two")
    assert by_beats(*beats) == {"id": "a", "other": "c"}


def test_members_that_contradict_each_other_name_nothing() -> None:
    assert by_beats(beat(1, ["a"], ["id"]), beat(2, ["c"], ["id"], member="other")) == {}
    assert by_beats(beat(1, ["a"], ["id"]), beat(2, ["a"], ["new"], member="other")) == {}
    assert by_beats(beat(1, ["b"], ["id"]), catalog=STATED) == {}


def without_names(name: str) -> tuple[Landed, dict[str, str]]:
    """A recording without all that joins names with ids, and what it states of them."""
    landed = read_inputs([str(CAPTURES / name)])
    whole = derive(decoded(landed.frames), landed.gaps, StreamSettings())
    states = pc.is_in(landed.frames.column("api_key"), pa.array(sorted(PARTS["fact"].apis), pa.int16()))
    kept = landed.frames.filter(pc.invert(pc.fill_null(states, fill_value=False)))
    truth = {topic_id: seen.value for (_, topic_id), seen in whole.catalog.topics.items()}
    return Landed(kept, landed.gaps, None), truth


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stuck_commit.pcap", "incidents/lagging.pcap", "incidents/hung.pcap"])
def test_a_recording_without_names_is_judged_as_with_them(name: str) -> None:
    landed, truth = without_names(name)
    found = diagnose(landed, StreamSettings())
    inferred = {topic_id: seen.value for (_, topic_id), seen in found.derived.catalog.topics.items()}
    assert inferred
    assert inferred.items() <= truth.items()
    assert f"No message states the topic id of {', '.join(sorted(inferred.values()))}" in what_was_looked_at(found)
    whole = diagnose(read_inputs([str(CAPTURES / name)]), StreamSettings())
    judged, before = (
        {(one["rule"], one["subject"]) for one in some.findings.to_pylist() if one["group_id"]}
        for some in (found, whole)
    )
    assert judged == before


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", sorted(str(path.relative_to(CAPTURES)) for path in CAPTURES.rglob("*.pcap*") if "mongodb" not in str(path))
)
def test_no_name_is_inferred_wrongly(name: str) -> None:
    landed, truth = without_names(name)
    found = derive(decoded(landed.frames), landed.gaps, StreamSettings())
    inferred = {topic_id: seen.value for (_, topic_id), seen in found.catalog.topics.items()}
    assert inferred.items() <= truth.items()
    findings_of(found, StreamSettings().findings)
