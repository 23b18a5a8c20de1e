"""Rule ``request_refused``: no code at no api is silent; what passes, heals or is judged elsewhere is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.rules.kafka.refusals import Refusal, is_judged_elsewhere, refusals
from pipeline.analysis.rules.rule import all_rules
from tests.hostile.amplifiers.talk import S, Talk
from tests.pipeline.analysis.rules.kafka.refused_everywhere import APIS, judged, pairs, silent

INIT = int(ApiKey.INIT_PRODUCER_ID)
TIMEOUT, BUSY = KafkaError.INVALID_TRANSACTION_TIMEOUT, KafkaError.CONCURRENT_TRANSACTIONS


def found(codes: Sequence[int], *, every_s: float = 20.0, ids: Sequence[str] = ("sink",)) -> list[dict[str, object]]:
    """What is found where producers ask for an id, each in turn, and get these codes."""
    talk = Talk()
    for number, code in enumerate(codes):
        asked = {"transactionalId": ids[number % len(ids)], "transactionTimeoutMs": 1, "producerId": -1}
        answer = {"errorCode": int(code), "producerId": -1 if code else 7, "producerEpoch": 0}
        talk.say(INIT, 4, asked, answer, after_us=int(every_s * S))
    rows: list[dict[str, object]] = judged(talk).findings.to_pylist()
    return [row for row in rows if row["rule"] == "request_refused"]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_no_code_at_no_api_is_silent(api: ApiKey) -> None:
    assert silent(pairs([api])) == []


@pytest.mark.parametrize(
    ("step_s", "apis"),
    [
        pytest.param(310, (ApiKey.OFFSET_FETCH, ApiKey.PRODUCE, ApiKey.JOIN_GROUP), id="310"),
        *(pytest.param(step, APIS, id=f"{step}-all", marks=pytest.mark.proof) for step in (1, 10, 60, 310)),
    ],
)
def test_nor_at_any_rhythm(step_s: int, apis: Sequence[ApiKey]) -> None:
    """Clients ask again at once, by a back-off, or by a schedule: then each five minutes and a little more."""
    assert [name for api in apis for name in silent(pairs([api]), step_s)] == []


@pytest.mark.parametrize(
    ("step_s", "accepted", "apis"),
    [
        pytest.param(300, 4, (ApiKey.SYNC_GROUP, ApiKey.SASL_AUTHENTICATE), id="300"),
        *(
            pytest.param(step, accepted, APIS, id=f"{step}-all", marks=pytest.mark.proof)
            for step, accepted in ((1, 3), (30, 15), (300, 15))
        ),
    ],
)
def test_nor_amid_bursts_of_accepted_requests(step_s: int, accepted: int, apis: Sequence[ApiKey]) -> None:
    """What else a client asks for on the same connection hides nothing: requests of one api are judged by its own."""
    assert [name for api in apis for name in silent(pairs([api]), step_s, accepted)] == []


def test_what_is_silent_is_declared_with_its_reason() -> None:
    """A code is health as the answer of the apis at which brokers state it all day, and of no other."""
    assert {(ApiKey(pair.api).name, KafkaError(pair.code).name) for pair in pairs() if pair.is_health} == {
        ("HEARTBEAT", "REBALANCE_IN_PROGRESS"), ("JOIN_GROUP", "MEMBER_ID_REQUIRED"),
        ("PRODUCE", "DUPLICATE_SEQUENCE_NUMBER"), ("CREATE_TOPICS", "TOPIC_ALREADY_EXISTS"),
        ("DELETE_TOPICS", "UNKNOWN_TOPIC_OR_PARTITION"), ("DELETE_GROUPS", "GROUP_ID_NOT_FOUND"),
        ("DESCRIBE_GROUPS", "GROUP_ID_NOT_FOUND"),
    }  # fmt: skip


def test_one_finding_says_who_is_refused_what_and_what_to_do() -> None:
    (row,) = found([TIMEOUT] * 4)
    assert (row["severity"], row["state"]) == ("critical", "ongoing")
    assert row["subject"] == "client/InitProducerId/INVALID_TRANSACTION_TIMEOUT/sink"
    assert "none was accepted since" in str(row["summary"])
    assert "transaction.max.timeout.ms" in str(row["advice"])


def test_less_than_a_minute_is_a_warning() -> None:
    assert [row["severity"] for row in found([TIMEOUT] * 4, every_s=1)] == ["warning"]


def test_a_try_is_none() -> None:
    assert found([TIMEOUT] * 2) == []


def test_what_passes_by_itself_has_time() -> None:
    assert found([BUSY] * 20, every_s=0.1) == []
    assert found([*[BUSY] * 100, 0], every_s=0.2) == []
    assert [row["severity"] for row in found([BUSY] * 20, every_s=1)] == ["warning"]
    assert [row["severity"] for row in found([BUSY] * 60, every_s=1)] == ["critical"]


def test_who_is_accepted_at_last_is_over() -> None:
    (row,) = found([TIMEOUT, TIMEOUT, TIMEOUT, 0])
    assert (row["severity"], row["state"]) == ("warning", "resolved")
    assert [row["severity"] for row in found([TIMEOUT, TIMEOUT, TIMEOUT, 0], every_s=1)] == ["info"]


def test_an_accepted_request_between_begins_anew() -> None:
    assert found([TIMEOUT, TIMEOUT, 0, TIMEOUT, TIMEOUT, 0]) == []


def test_the_success_of_another_producer_heals_nothing() -> None:
    (row,) = found([TIMEOUT, 0] * 4, every_s=5, ids=("sink", "other"))
    assert (row["state"], str(row["subject"]).endswith("/sink")) == ("ongoing", True)


def test_a_partition_is_refused_beside_one_that_is_not() -> None:
    answer = {
        "topics": [
            {"name": "a", "partitions": [{"partitionIndex": 0, "errorCode": 0}, {"partitionIndex": 3, "errorCode": 7}]}
        ]
    }
    assert list(refusals(ApiKey.OFFSET_COMMIT, (7,), {}, answer)) == [Refusal(7, "a", 3)]


def test_groups_within_an_answer_are_looked_into() -> None:
    part = {"partitionIndex": 1, "errorCode": 88}
    answer = {"groups": [{"groupId": "g", "topics": [{"name": "a", "partitions": [part]}]}]}
    asked = {"groups": [{"groupId": "g"}]}
    assert list(refusals(ApiKey.OFFSET_FETCH, (88,), asked, answer)) == [Refusal(88, "a", 1, "g")]


def test_what_another_code_is_the_reason_of_is_left_out() -> None:
    codes = (int(KafkaError.OPERATION_NOT_ATTEMPTED), int(KafkaError.UNKNOWN_TOPIC_OR_PARTITION))
    assert [one.code for one in refusals(ApiKey.ADD_PARTITIONS_TO_TXN, codes, {}, {})] == [codes[1]]


def test_health_is_judged_elsewhere() -> None:
    assert is_judged_elsewhere(ApiKey.HEARTBEAT, KafkaError.REBALANCE_IN_PROGRESS)
    assert is_judged_elsewhere(ApiKey.CREATE_TOPICS, KafkaError.TOPIC_ALREADY_EXISTS)
    assert is_judged_elsewhere(ApiKey.CONSUMER_GROUP_DESCRIBE, KafkaError.GROUP_ID_NOT_FOUND)


def test_it_is_a_rule() -> None:
    assert "request_refused" in {rule.name for rule in all_rules()}
