"""Names that a library gives are told from names that somebody chose."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.case.default_names import is_default_name


@pytest.mark.parametrize(
    "name",
    [
        "rdkafka", "sarama", "consumer-1", "producer", "?",
        "kafka-python", "kafka-python-2.2.0", "kafka-python-2.0.3.dev0", "kafka-python-producer-1",
        "aiokafka", "aiokafka-0.12.0", "aiokafka-0.8.0rc1", "aiokafka-producer-3", "confluent-kafka",
        "confluent-kafka-go", "confluent-kafka-python-2.6.1", "confluent-kafka-consumer", "confluent-kafka-v1.9.2-2",
        "PyMongo|Motor", "mongo-java-driver|sync", "mongoc", "mongoc / mongocxx", "mongocxx",
        "mongoc / ext-mongodb:PHPLIB", "mongoc / ext-mongodb:PHP",
    ],
)  # fmt: skip
def test_a_library_names_itself_with_version_role_and_number(name: str) -> None:
    assert is_default_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "confluent-kafka-orders-service", "confluent-kafka-orders", "kafka-python-billing",
        "kafka-python-2.2.0-billing", "aiokafka-consumer-of-payments", "kafka-python-", "consumer-orders-1",
        "mongocxx-importer", "mongoc-importer",
    ],
)  # fmt: skip
def test_what_somebody_added_is_a_choice(name: str) -> None:
    assert not is_default_name(name)
