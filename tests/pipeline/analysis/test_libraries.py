"""Each advice is in the words of the library that the wire names."""

from __future__ import annotations

import re

import pytest

from pipeline.analysis.libraries import (
    AIOKAFKA,
    CHECKS_CRCS,
    COOPERATIVELY,
    FRANZ_GO,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    KRAFKA,
    LIBRARIES,
    LIBRDKAFKA,
    OR_CONSUMER_PROTOCOL,
    SARAMA,
    WHEN_REVOKED,
    library_of,
    spoken,
)
from pipeline.analysis.rules.kafka.speaking import LIBRARY, in_words_of_libraries
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.rule import all_rules
from pipeline.tables import STATE_EVENTS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import row

TEXTS = sorted(
    {
        *(text for rule in all_rules() if rule.protocol == "kafka" for text in rule.advice),
        *(rule.texts.fix for rule in all_rules() if rule.texts and isinstance(rule.texts.fix, str)),
    }
)


@pytest.mark.parametrize(
    ("software", "client_id", "library"),
    [
        ("apache-kafka-java", "x", JAVA),
        ("confluent-kafka-python", "x", LIBRDKAFKA),
        ("librdkafka", None, LIBRDKAFKA),
        ("sarama", "kafkajs", SARAMA),
        ("kgo", "x", FRANZ_GO),
        ("krafka", "kgo", KRAFKA),
        ("rskafka", "kgo", None),
        (None, "kafkajs", KAFKAJS),
        (None, "aiokafka-0.12.0", AIOKAFKA),
        (None, "kafka-python-2.0.2", KAFKA_PYTHON),
        (None, "worker@host (github.com/segmentio/kafka-go)", KAFKA_GO),
        (None, "sarama-payments", None),
        (None, None, None),
    ],
)
def test_the_library_is_what_the_wire_names(software: str | None, client_id: str | None, library: str | None) -> None:
    assert library_of(software, client_id) == library


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_names_what_one_library_has(text: str, library: str) -> None:
    said = spoken(text, library)
    assert said.count("(") == said.count(")")
    assert "  " not in said
    assert spoken(said, library) == said
    if library != LIBRDKAFKA:
        assert not re.search(r"\(librdkafka: |in librdkafka|rebalance_cb|offsets_store", said)
    if library not in (JAVA, LIBRDKAFKA):
        assert not re.search(r"(?<![\w.])(max\.poll\.|session\.timeout\.ms)|Spring|in Java", said)


def test_names_of_properties_are_those_of_the_library() -> None:
    text = f"lower max.poll.records (librdkafka: smaller batches of consume()), stop when revoked ({WHEN_REVOKED})."
    assert spoken(text, None) == text
    assert spoken(text, JAVA) == (
        "lower max.poll.records, stop when revoked (ConsumerRebalanceListener.onPartitionsRevoked)."
    )
    assert spoken(text, LIBRDKAFKA) == (
        "lower smaller batches of consume(), stop when revoked (rebalance_cb; on_revoke in Python)."
    )
    assert spoken(text, AIOKAFKA).startswith("lower max_poll_records, stop")
    assert spoken("group.consumer.session.timeout.ms, session.timeout.ms.", SARAMA) == (
        "group.consumer.session.timeout.ms, Consumer.Group.Session.Timeout."
    )


@pytest.mark.parametrize(
    ("text", "library", "words"),
    [
        ("commit with enable.auto.commit=true.", SARAMA, "commit with Consumer.Offsets.AutoCommit.Enable=true."),
        ("commit with enable.auto.commit=true.", FRANZ_GO, "commit with kgo.AutoCommitMarks."),
        ("commit with enable.auto.commit=true.", KAFKAJS, "commit with autoCommit=true."),
        ("commit with enable.auto.commit=true.", AIOKAFKA, "commit with enable_auto_commit=True."),
        ("give it a group.id of its own.", KAFKA_GO, "give it a ReaderConfig.GroupID of its own."),
        ("check sasl.jaas.config (librdkafka: sasl.username).", SARAMA, "check Net.SASL.User and Net.SASL.Password."),
        ("check sasl.jaas.config (librdkafka: sasl.username).", LIBRDKAFKA, "check sasl.username."),
        ("end each (abortTransaction) before.", KAFKAJS, "end each (abort()) before."),
        (f"{COOPERATIVELY} make it cheaper.", JAVA, f"{COOPERATIVELY} make it cheaper."),
        (f"{COOPERATIVELY} make it cheaper.", FRANZ_GO,
         "kgo.CooperativeStickyBalancer among kgo.Balancers make it cheaper."),
        (f"{COOPERATIVELY} make it cheaper.", SARAMA,
         "NewBalanceStrategyCooperativeSticky in Consumer.Group.Rebalance.GroupStrategies, if the release has it, "
         "make it cheaper."),
        (f"{COOPERATIVELY} make it cheaper.", KAFKA_GO,
         "a client library with cooperative rebalances, which kafka-go does not have, make it cheaper."),
        (f"disk or network; {CHECKS_CRCS}.", LIBRDKAFKA,
         "disk or network; set check.crcs=true for consumers (it is false by default)."),
        (f"disk or network; {CHECKS_CRCS}.", KAFKA_PYTHON, "disk or network; check_crcs of consumers stays True."),
        ("resume() what was paused.", FRANZ_GO, "ResumeFetchPartitions() what was paused."),
        ("resume() what was paused.", KAFKA_GO, "resume what was paused."),
        ("the same id (initTransactions aborts it).", AIOKAFKA, "the same id (start() aborts it)."),
        ("catch TransactionAbortableException.", KAFKA_PYTHON, "catch TransactionAbortableError."),
        ("once more before close().", KAFKAJS, "once more before disconnect()."),
        ("raise max.poll.interval.ms; group.instance.id.", KRAFKA, "raise max_poll_interval; group_instance_id."),
        ("commit with enable.auto.commit=true.", KRAFKA, "commit with enable_auto_commit(true)."),
        (f"a longer one{OR_CONSUMER_PROTOCOL} spare the others.", KAFKAJS, "a longer one spare the others."),
    ],
)  # fmt: skip
def test_no_library_gets_a_property_that_it_lacks(text: str, library: str, words: str) -> None:
    assert spoken(text, library) == words


@pytest.mark.parametrize("library", [SARAMA, FRANZ_GO, KAFKA_GO, KAFKAJS])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_for_go_or_node_names_properties_of_java_clients(text: str, library: str) -> None:
    said = spoken(text, library)
    assert not re.search(r"initTransactions|\w+Exception|check\.crcs|(?<![\w.])(assign|subscribe)\(\)", said) or (
        library == KAFKAJS and "assign()" in said
    )
    assert not re.search(r"(?<![\w.])(group\.id|sasl\.jaas\.config|enable\.auto\.commit|cooperative-sticky)", said)
    if library != KAFKA_GO:
        assert not re.search(r"(?<![\w.])(transactional\.id(?!\.)|beginTransaction|commitTransaction)", said)


def _finding(**details: object) -> Finding:
    return Finding(
        rule="stopped", severity="critical", subject="g/t", state="ongoing", cluster="k", topic="t", partition=None,
        group_id="g", first_us=0, last_us=1, summary="It stands.", advice="Now: wait. Fix: lower max.poll.records.",
        details=details,
    )  # fmt: skip


def test_a_finding_speaks_as_the_library_of_its_clients() -> None:
    def software(client_id: str, host: str, name: str) -> dict[str, object]:
        return row(STATE_EVENTS, kind="software", client_id=client_id, client=f"{host}:4000", software_name=name)

    known = tables(
        states=[
            software("a", "10.0.0.1", "sarama"),
            software("a", "10.0.0.2", "kgo"),
            software("b", "10.0.0.1", "aiokafka"),
            row(STATE_EVENTS, kind="join", group_id="g", client_id="b", client="10.0.0.1:4001"),
        ]
    )
    stated = [
        _finding(clients=["a at 10.0.0.1"]),
        _finding(clients=["a at 10.0.0.2"]),
        _finding(clients=["a at 10.0.0.1", "b at 10.0.0.1"]),
        _finding(client_id="a"),
        _finding(),
    ]
    found = in_words_of_libraries(stated, known)
    assert [one.details.get(LIBRARY) for one in found] == [SARAMA, FRANZ_GO, None, None, AIOKAFKA]
    assert found[0].advice.endswith("lower ChannelBufferSize.")
    assert found[2] == stated[2]
