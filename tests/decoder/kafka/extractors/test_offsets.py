"""What one exchange states about offsets: each api, its odd versions, and bodies that end early."""

from __future__ import annotations

from typing import Any

from decoder.kafka.extractors.offsets import offset_events

Json = dict[str, Any]
V2 = {"magic": 2, "status": "ok", "isControlBatch": False, "producerId": -1, "producerEpoch": -1}


def batch(first: int, last: int, **more: Any) -> Json:
    return {**V2, "baseOffset": first, "lastOffset": last, "recordsCount": last - first + 1, **more}


def produce(*batches: Json, acks: int = -1, **more: Any) -> Json:
    part = {"index": 0, "recordsSizeInBytes": 100, "recordBatches": list(batches)}
    return {"acks": acks, "topicData": [{"name": "t", "partitionData": [part]}], **more}


def produced(base: int, error: int = 0) -> Json:
    part = {"index": 0, "errorCode": error, "baseOffset": base, "logStartOffset": 0}
    return {"responses": [{"name": "t", "partitionResponses": [part]}]}


def fetch(*offsets: int, isolation: int = 0, **more: Any) -> Json:
    parts = [{"partition": p, "fetchOffset": o, "currentLeaderEpoch": 3} for p, o in enumerate(offsets)]
    return {"isolationLevel": isolation, "topics": [{"topic": "t", "partitions": parts}], **more}


def fetched(partition: int, *batches: Json, error: int = 0, high: int = 20, stable: int = 15) -> Json:
    part = {
        "partitionIndex": partition, "errorCode": error, "highWatermark": high, "lastStableOffset": stable,
        "logStartOffset": 0, "recordBatches": list(batches),
    }  # fmt: skip
    return {"errorCode": 0, "responses": [{"topic": "t", "partitions": [part]}]}


def commit(offset: int, **more: Any) -> Json:
    part = {"partitionIndex": 0, "committedOffset": offset, "committedLeaderEpoch": -1, "committedMetadata": "note"}
    return {
        "groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 4,
        "topics": [{"name": "t", "partitions": [part]}], **more,
    }  # fmt: skip


def verdict(code: int) -> Json:
    return {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": code}]}]}


def test_produce_gets_its_offsets_from_the_response() -> None:
    (event,) = offset_events(0, 9, produce(batch(0, 4, producerId=7, producerEpoch=1)), produced(100), "app")
    assert (event.kind, event.offset, event.next_offset, event.records) == ("produced", 100, 105, 5)
    assert (event.producer_id, event.producer_epoch, event.client_id) == (7, 1, "app")
    assert (event.error_code, event.error_name, event.log_start_offset) == (0, "NONE", 0)


def test_produce_without_acks_shows_how_many_records_but_not_where() -> None:
    (event,) = offset_events(0, 9, produce(batch(0, 4), acks=0), None)
    assert (event.kind, event.records, event.offset, event.next_offset, event.error_code) == (
        "produced", 5, None, None, None,
    )  # fmt: skip


def test_a_refused_produce_has_no_offset() -> None:
    (event,) = offset_events(0, 9, produce(batch(0, 4)), produced(-1, error=6))
    assert (event.kind, event.offset, event.error_name) == ("produce_rejected", None, "NOT_LEADER_OR_FOLLOWER")


def test_a_compressed_message_of_the_old_format_hides_its_count() -> None:
    old = {"magic": 1, "status": "ok", "baseOffset": None, "lastOffset": 2, "recordsCount": None}
    (event,) = offset_events(0, 2, produce(old), produced(100))
    assert (event.offset, event.next_offset, event.records) == (100, None, None)


def test_a_transaction_is_named() -> None:
    (event,) = offset_events(0, 9, produce(batch(0, 0), transactionalId="tx"), produced(1))
    assert event.transactional_id == "tx"


def test_fetch_counts_records_but_not_markers() -> None:
    marker = batch(12, 12, isControlBatch=True)
    (event,) = offset_events(1, 12, fetch(10, isolation=1), fetched(0, batch(10, 11), marker))
    assert (event.kind, event.offset, event.next_offset, event.records) == ("fetched", 10, 13, 2)
    assert (event.high_watermark, event.last_stable_offset, event.isolation_level) == (20, 15, "read_committed")


def test_a_partial_batch_at_the_end_was_not_read() -> None:
    cut = batch(12, 30) | {"status": "partial"}
    (event,) = offset_events(1, 4, fetch(10), fetched(0, batch(10, 11), cut))
    assert (event.next_offset, event.records) == (12, 2)


def test_an_incremental_answer_still_shows_the_position_of_quiet_partitions() -> None:
    events = offset_events(1, 12, fetch(10, 40), fetched(0))
    assert [(e.partition, e.kind, e.offset, e.high_watermark) for e in events] == [
        (0, "fetched", 10, 20),
        (1, "fetched", 40, None),
    ]


def test_an_answer_may_name_a_partition_of_the_session_that_the_request_did_not() -> None:
    (event,) = offset_events(1, 12, {"isolationLevel": 0, "topics": []}, fetched(5, batch(7, 9)))
    assert (event.partition, event.offset, event.next_offset) == (5, None, 10)


def test_an_error_of_the_session_rejects_what_was_asked() -> None:
    (event,) = offset_events(1, 12, fetch(10), {"errorCode": 70, "responses": []})
    assert (event.kind, event.error_name) == ("fetch_rejected", "FETCH_SESSION_ID_NOT_FOUND")


def test_followers_have_no_isolation_level() -> None:
    for request in (fetch(10, replicaId=2), fetch(10, replicaState={"replicaId": 2, "replicaEpoch": 1})):
        (event,) = offset_events(1, 12, request, fetched(0))
        assert event.isolation_level is None


def test_topic_ids_instead_of_names_pair_request_and_response() -> None:
    part = {"partition": 0, "fetchOffset": 3}
    request = {"isolationLevel": 0, "topics": [{"topicId": "abc", "partitions": [part]}]}
    response = fetched(0)
    response["responses"][0] = {"topicId": "abc", "partitions": response["responses"][0]["partitions"]}
    (event,) = offset_events(1, 13, request, response)
    assert (event.topic, event.topic_id, event.offset) == (None, "abc", 3)


def test_list_offsets_old_and_new() -> None:
    asked = {"replicaId": -1, "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]}
    new = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0, "offset": 9}]}]}
    old = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0, "oldStyleOffsets": [8, 0]}]}]}
    none = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0, "oldStyleOffsets": []}]}]}
    found = [offset_events(2, v, asked, r)[0] for v, r in ((5, new), (0, old), (0, none))]
    assert [(e.offset, e.list_timestamp) for e in found] == [(9, -1), (8, -1), (None, -1)]


def test_commits_are_accepted_or_rejected_by_partition() -> None:
    (good,) = offset_events(8, 8, commit(42), verdict(0))
    (bad,) = offset_events(8, 8, commit(42), verdict(22))
    assert (good.kind, good.offset, good.group_id, good.member_id, good.generation) == ("committed", 42, "g", "m", 4)
    assert (good.metadata, good.leader_epoch) == ("note", None)
    assert (bad.kind, bad.error_name) == ("commit_rejected", "ILLEGAL_GENERATION")


def test_a_commit_without_an_answer_states_nothing() -> None:
    assert offset_events(8, 8, commit(42), None) == []
    assert offset_events(8, 8, commit(42), {}) == []


def test_a_commit_inside_a_transaction_is_another_kind() -> None:
    request = commit(42, transactionalId="tx", producerId=7, producerEpoch=0)
    (event,) = offset_events(28, 3, request, verdict(0))
    assert (event.kind, event.transactional_id, event.producer_id) == ("txn_committed", "tx", 7)
    assert offset_events(28, 3, request, verdict(47))[0].kind == "txn_commit_rejected"


def test_offset_fetch_of_one_group_and_of_several() -> None:
    part = {"partitionIndex": 0, "committedOffset": 5, "committedLeaderEpoch": -1, "metadata": "", "errorCode": 0}
    none = {**part, "partitionIndex": 1, "committedOffset": -1}
    topics = [{"name": "t", "partitions": [part, none]}]
    old = offset_events(9, 7, {"groupId": "g"}, {"topics": topics, "errorCode": 0})
    assert [(e.group_id, e.partition, e.offset) for e in old] == [("g", 0, 5), ("g", 1, None)]
    request = {"groups": [{"groupId": "a", "memberId": "m", "memberEpoch": 2}, {"groupId": "b"}]}
    response = {"groups": [{"groupId": name, "topics": topics[:1], "errorCode": 0} for name in ("a", "b")]}
    new = offset_events(9, 9, request, response)
    assert [(e.group_id, e.member_id, e.generation, e.ordinal) for e in new if e.partition == 0] == [
        ("a", "m", 2, 0),
        ("b", None, None, 1),
    ]


def test_bodies_that_end_early_give_what_they_hold() -> None:
    assert offset_events(1, 12, {"topics": [{"topic": "t"}]}, {"responses": [{"partitions": None}]}) == []
    assert offset_events(0, 9, {"topicData": None}, {}) == []
    assert offset_events(9, 8, {}, {"groups": [{"topics": [{"name": "t", "partitions": [{}]}]}]}) == []


def test_other_apis_state_nothing() -> None:
    assert offset_events(18, 3, {}, {}) == []


def test_positions_beyond_the_largest_offset_are_unknown() -> None:
    top = (1 << 63) - 1
    (event,) = offset_events(1, 12, fetch(0), fetched(0, batch(top - 1, top)), "app")
    assert event.next_offset is None
    (event,) = offset_events(0, 9, produce(batch(0, 4)), produced(top), "app")
    assert (event.offset, event.next_offset) == (top, None)


def test_an_error_code_that_was_cut_off_is_not_known_and_is_no_success() -> None:
    answer = {"responses": [{"name": "t", "partitionResponses": [{"index": 0}]}]}
    (event,) = offset_events(0, 9, produce(batch(0, 4)), answer)
    assert (event.kind, event.error_code, event.offset, event.next_offset) == ("produced", None, None, None)
    (event,) = offset_events(1, 12, fetch(10), {})
    assert (event.kind, event.error_code) == ("fetched", None)
    cut_off = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 5}]}]}
    (event,) = offset_events(9, 7, {"groupId": "g"}, cut_off)
    assert (event.error_code, event.offset) == (None, None)
    assert offset_events(8, 8, commit(5), {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]}) == []


def test_a_fetch_has_an_error_code_of_its_own_since_version_7_only() -> None:
    (event,) = offset_events(1, 6, fetch(10), {"responses": []})
    assert event.error_code == 0


def test_an_isolation_level_that_was_cut_off_is_not_known() -> None:
    request = {"topics": [{"topic": "t", "partitions": [{"partition": 0, "fetchOffset": 3}]}]}
    assert [offset_events(1, version, request, None)[0].isolation_level for version in (3, 4)] == [
        "read_uncommitted", None,
    ]  # fmt: skip


def test_offsets_that_no_64_bits_hold_are_not_known() -> None:
    largest = 2**63 - 1
    (event,) = offset_events(1, 12, fetch(largest), fetched(0, batch(largest, largest), high=largest))
    assert (event.offset, event.next_offset, event.high_watermark) == (largest, None, largest)
    (event,) = offset_events(0, 9, produce(batch(0, 9)), produced(largest - 3))
    assert (event.offset, event.next_offset) == (largest - 3, None)
    (event,) = offset_events(0, 9, produce(batch(0, largest - 1), batch(0, largest - 1)), produced(5))
    assert event.next_offset is None


def test_what_is_of_another_type_is_left_out_and_the_rest_stays() -> None:
    odd: list[Any] = [7, None, {"partition": []}, {"partition": 2**31}, {"partition": -1}, {"partition": 1}]
    request = {"isolationLevel": 0, "topics": [{"topic": "t", "partitions": odd}, {"topic": {}}, "x"]}
    (event,) = offset_events(1, 12, request, {"errorCode": [], "responses": 5})
    assert (event.partition, event.offset, event.error_code) == (1, None, None)
