"""The table of error codes: it leaves no code out, and what it states of each is whole and true."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.schema.table import api_names
from decoder.mongodb.error_names import ERROR_NAMES
from pipeline.analysis.codes.advice import advice_of, facts_of
from pipeline.analysis.codes.kafka.answers import kafka_facts
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import ACTORS, KINDS, NOTHING, CodeFacts, CodeTable
from pipeline.analysis.codes.mongodb.table import MONGODB
from pipeline.analysis.codes.table import TABLES, meaning

ROWS = [row for table in TABLES.values() for row in table.rows]
_NAMES = {"topic", "group", "transactional_id"}


def test_no_code_is_left_out_and_each_has_its_name() -> None:
    assert {row.code: row.name for row in KAFKA.rows} == {int(error): error.name for error in KafkaError}
    assert {row.code: row.name for row in MONGODB.rows} == ERROR_NAMES
    assert all(table.meaning(None, row.code).is_known for table in TABLES.values() for row in table.rows)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.api}")
def test_a_row_is_whole(row: CodeFacts) -> None:
    assert row.kind in KINDS
    assert row.actor in ACTORS
    for text in (row.meaning, row.now, row.fix):
        assert text.endswith("."), text
        assert text == " ".join(text.split()), text
        assert text.count("`") % 2 == 0, text
        assert {name for _, name, _, _ in Formatter().parse(text) if name is not None} <= _NAMES, text
    assert row.meaning[0].isupper()
    assert "Now:" not in row.advice[4:]
    assert row.advice.count("Fix:") == 1
    if row.kind in ("refusal", "configuration", "loss"):
        assert row.actor != "no one"
        assert row.now != NOTHING
        assert row.fix != NOTHING
    if row.actor == "no one":
        assert row.kind in ("health", "transient")


def test_apis_of_rows_exist() -> None:
    assert {row.api for row in KAFKA.rows if row.api is not None} <= set(api_names())
    assert all(isinstance(row.api, str) for row in MONGODB.rows if row.api is not None)


@pytest.mark.parametrize(
    ("protocol", "api", "code", "kind", "actor", "words"),
    [
        ("kafka", ApiKey.HEARTBEAT, 27, "health", "no one", "joins again by itself"),
        ("kafka", ApiKey.JOIN_GROUP, 27, "transient", "operator", "__consumer_offsets"),
        ("kafka", ApiKey.FETCH, 27, "transient", "client", "rejoins"),
        ("kafka", ApiKey.FETCH, 36, "refusal", "operator", "server.log"),
        ("kafka", ApiKey.OFFSET_COMMIT, 27, "transient", "application", "rejoins, then commit"),
        ("kafka", ApiKey.CREATE_TOPICS, 36, "health", "no one", "nothing"),
        ("kafka", ApiKey.DELETE_TOPICS, 3, "health", "no one", "nothing"),
        ("kafka", ApiKey.METADATA, 3, "refusal", "application", "create the topic"),
        ("kafka", ApiKey.OFFSET_COMMIT, 16, "transient", "client", "FindCoordinator"),
        ("kafka", ApiKey.OFFSET_COMMIT, 12, "refusal", "application", "offset.metadata.max.bytes"),
        ("kafka", ApiKey.CREATE_ACLS, 54, "configuration", "operator", "authorizer.class.name"),
        ("kafka", ApiKey.OFFSET_FETCH, 88, "transient", "application", "open transaction"),
        ("kafka", ApiKey.INIT_PRODUCER_ID, 50, "configuration", "application", "transaction.max.timeout.ms"),
        ("kafka", ApiKey.INIT_PRODUCER_ID, 51, "transient", "no one", "by itself"),
        ("kafka", ApiKey.FETCH, 76, "configuration", "application", "update the consumer's library"),
        ("kafka", ApiKey.PRODUCE, 76, "configuration", "application", "compression.type of the producer"),
        ("kafka", ApiKey.FETCH, -1, "refusal", "operator", "server.log"),
        ("kafka", ApiKey.JOIN_GROUP, 79, "health", "no one", "nothing"),
        ("kafka", ApiKey.API_VERSIONS, 35, "health", "no one", "nothing"),
        ("kafka", ApiKey.PRODUCE, 35, "configuration", "application", "update the client library"),
        ("kafka", ApiKey.PRODUCE, 46, "health", "no one", "nothing"),
        ("kafka", ApiKey.PRODUCE, 29, "refusal", "operator", "--operation Write --topic {topic}"),
        ("kafka", ApiKey.FETCH, 29, "refusal", "operator", "--operation Read --topic {topic}"),
        ("kafka", ApiKey.DELETE_GROUPS, 30, "refusal", "operator", "--operation Delete --group {group}"),
        ("kafka", ApiKey.INIT_PRODUCER_ID, 31, "refusal", "operator", "--operation IdempotentWrite --cluster"),
        ("mongodb", "find", 13, "refusal", "operator", "grantRolesToUser"),
        ("mongodb", "saslStart", 18, "refusal", "application", "authSource"),
        ("mongodb", "insert", 11000, "refusal", "application", "upsert"),
        ("mongodb", "update", 112, "transient", "application", "pause some of the workers"),
        ("mongodb", "insert", 10107, "transient", "client", "directConnection"),
        ("mongodb", "find", 50, "refusal", "application", "explain()"),
        ("mongodb", "drop", 26, "health", "no one", "nothing"),
        ("mongodb", "collStats", 26, "refusal", "application", "create the collection"),
        ("mongodb", "create", 48, "health", "no one", "nothing"),
        ("mongodb", "getMore", 43, "refusal", "application", "repeat the query"),
        ("mongodb", "abortTransaction", 251, "health", "no one", "nothing"),
        ("mongodb", "commitTransaction", 251, "transient", "application", "withTransaction"),
        ("mongodb", "insert", 14031, "loss", "operator", "disk space"),
    ],
)  # fmt: skip
def test_what_a_code_means_depends_on_what_was_asked(
    protocol: str, api: int | str, code: int, kind: str, actor: str, words: str
) -> None:
    facts = meaning(protocol, int(api) if isinstance(api, ApiKey) else api, code)
    assert (facts.kind, facts.actor) == (kind, actor)
    assert words in facts.advice


@pytest.mark.parametrize(("protocol", "code"), [("kafka", 999), ("mongodb", 40352), ("mongodb", 2**31 - 1)])
def test_a_code_that_is_not_known_gets_what_holds_of_any(protocol: str, code: int) -> None:
    facts = meaning(protocol, None, code)
    assert (facts.is_known, facts.code, facts.name) == (False, code, f"UNKNOWN({code})")
    assert "wirelake explain" in facts.now


def test_codes_that_drivers_retry_are_those_of_their_specification() -> None:
    """mongodb/specifications: retryable reads and writes; 112 is of transactions."""
    retryable_writes = {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
    assert set(MONGODB.retried()) == retryable_writes | {134, 112}


def test_a_name_leads_to_its_code() -> None:
    for table in TABLES.values():
        assert all(table.code_of(row.name) == row.code for row in table.rows)
    found = {name: MONGODB.code_of(name) for name in ("NotMaster", "Location40352", "error 7", "UNKNOWN(-3)", "Name")}
    assert found == {"NotMaster": 10107, "Location40352": 40352, "error 7": 7, "UNKNOWN(-3)": -3, "Name": None}


def test_a_table_has_one_row_for_a_code_and_api() -> None:
    row = CodeFacts(1, "A", "health", "no one", "It is.")
    with pytest.raises(ValueError, match="two rows"):
        CodeTable([row, row], row)


def test_advice_about_one_code_is_its_own_and_of_several_names_each() -> None:
    (one,) = facts_of("mongodb", [("find", "MaxTimeMSExpired"), ("find", "MaxTimeMSExpired")])
    assert advice_of([one]) == one.advice
    both = advice_of(facts_of("mongodb", [("find", "MaxTimeMSExpired"), ("find", "Unauthorized"), ("find", "Odd")]))
    assert re.match(r"Now: MaxTimeMSExpired: .* Unauthorized: .* Odd: .* Fix: MaxTimeMSExpired: .* Odd: ", both)


def test_the_right_that_the_api_needs_takes_the_place_of_the_general_one() -> None:
    answers = [("Metadata", "TOPIC_AUTHORIZATION_FAILED"), ("Produce", "TOPIC_AUTHORIZATION_FAILED")]
    (facts,) = kafka_facts(answers, topic="orders")
    assert "--operation Write --topic orders`" in facts.now
    (unnamed,) = kafka_facts(answers[1:])
    assert "--operation Write --topic TOPIC`" in unnamed.now
