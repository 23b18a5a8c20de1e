"""Names that a client library gives when none is configured; strangers share them."""

from __future__ import annotations

import re

_DEFAULTS = re.compile(
    r"""
    \? | an\ application\ without\ name
    | rdkafka | sarama | kafkajs | kgo | kafka-go | ruby-kafka | kafka-node-client | kafka-client | pykafka
    | (kafka-python|aiokafka|confluent-kafka(-(python|go|dotnet|javascript|js))?)
      (-(client|consumer|producer|admin|adminclient))?
      (-v?\d+(\.\d+)*(\.?(a|b|rc|dev|post)\d+)*)*
    | (consumer|producer|adminclient|admin-client|console-consumer|console-producer|perf-producer|perf-consumer)
      (-client)?(-\d+)?
    | pymongo(\|.*)? | nodejs(\|.*)? | mongo-(java|go|rust|csharp|ruby)-driver(\|.*)?
    | mongoc(\ /\ .*)? | mongocxx(\|.*)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""client.id of librdkafka, Sarama, KafkaJS, franz-go, kafka-go, ruby-kafka, kafka-python, aiokafka, the Java clients
and Kafka's tools, with what libraries add to them (version, role, number); names of MongoDB's drivers.

libmongoc names what is upon it, as PHP: ``mongoc / ext-mongodb:PHPLIB``."""


def is_default_name(name: str) -> bool:
    """Whether a library gives it."""
    return _DEFAULTS.fullmatch(name) is not None
