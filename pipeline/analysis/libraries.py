"""Client libraries of Kafka, and texts in the words of each: a property has another name in each of them.

Texts are written with the names of Kafka's own documentation, which are those of the Java client. What librdkafka calls
otherwise stands behind a name as ``(librdkafka: NAME)``. :func:`spoken` turns a text into the words of one library, if
the wire names it: by the software of ApiVersions (KIP-511), or by a client id that the library sets by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

JAVA: Final = "kafka-clients"
LIBRDKAFKA: Final = "librdkafka"
SARAMA: Final = "sarama"
FRANZ_GO: Final = "franz-go"
KAFKA_GO: Final = "kafka-go"
KAFKAJS: Final = "kafkajs"
KAFKA_PYTHON: Final = "kafka-python"
AIOKAFKA: Final = "aiokafka"
LIBRARIES: Final = (JAVA, LIBRDKAFKA, SARAMA, FRANZ_GO, KAFKA_GO, KAFKAJS, KAFKA_PYTHON, AIOKAFKA)
"""Libraries in whose words a text can be given."""

_SOFTWARE: Final[Mapping[str, str]] = {
    "apache-kafka-java": JAVA, "librdkafka": LIBRDKAFKA, "confluent-kafka": LIBRDKAFKA, "sarama": SARAMA,
    "kgo": FRANZ_GO, "kafka-python": KAFKA_PYTHON, "aiokafka": AIOKAFKA, "kafkajs": KAFKAJS,
    "segmentio/kafka-go": KAFKA_GO,
}  # fmt: skip
"""By the beginning of a software's name, in lower case."""
_DEFAULT_IDS: Final = (
    (re.compile(r"sarama\Z"), SARAMA), (re.compile(r"rdkafka\Z"), LIBRDKAFKA), (re.compile(r"kgo\Z"), FRANZ_GO),
    (re.compile(r"kafkajs\Z"), KAFKAJS), (re.compile(r"kafka-python-\d"), KAFKA_PYTHON),
    (re.compile(r"aiokafka-\d"), AIOKAFKA), (re.compile(r".*segmentio/kafka-go\)?\Z"), KAFKA_GO),
)  # fmt: skip
"""Client ids that libraries set where the application sets none."""

WHEN_REVOKED: Final = "ConsumerRebalanceListener.onPartitionsRevoked in Java, rebalance_cb in librdkafka"
"""Where an application learns that it loses a partition."""
STORED_BY: Final = "commitSync with a map in Java, enable.auto.offset.store=false with offsets_store in librdkafka"
"""How an application commits what it has processed and no more."""
_PHRASES: Final[Mapping[str, Mapping[str, str]]] = {
    WHEN_REVOKED: {
        JAVA: "ConsumerRebalanceListener.onPartitionsRevoked",
        LIBRDKAFKA: "rebalance_cb; on_revoke in Python",
        SARAMA: "return from ConsumeClaim when the session's Context() ends, wait for workers in Cleanup",
        FRANZ_GO: "kgo.OnPartitionsRevoked, with kgo.BlockRebalanceOnPoll",
        KAFKA_GO: "the context of Generation.Start ends",
        KAFKAJS: "isRunning() and isStale() in eachBatch",
        KAFKA_PYTHON: "ConsumerRebalanceListener.on_partitions_revoked",
        AIOKAFKA: "ConsumerRebalanceListener.on_partitions_revoked",
    },
    STORED_BY: {
        JAVA: "commitSync with a map; Spring: Acknowledgment.acknowledge()",
        LIBRDKAFKA: "enable.auto.offset.store=false with offsets_store",
        SARAMA: "MarkMessage of the session of this claim, and Commit() with Consumer.Offsets.AutoCommit.Enable=false",
        FRANZ_GO: "kgo.AutoCommitMarks with MarkCommitRecords, or CommitRecords",
        KAFKA_GO: "Reader.CommitMessages after FetchMessage",
        KAFKAJS: "resolveOffset in eachBatch, or commitOffsets with autoCommit: false",
        KAFKA_PYTHON: "commit(offsets) with enable_auto_commit=False",
        AIOKAFKA: "commit(offsets) with enable_auto_commit=False",
    },
}
"""What each library has in place of a phrase of the texts."""

_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    SARAMA: {
        "session.timeout.ms": "Consumer.Group.Session.Timeout",
        "heartbeat.interval.ms": "Consumer.Group.Heartbeat.Interval",
        "max.poll.interval.ms": "Consumer.Group.Rebalance.Timeout",
        "max.poll.records": "ChannelBufferSize",
        "group.instance.id": "Consumer.Group.InstanceId",
        "partition.assignment.strategy": "Consumer.Group.Rebalance.GroupStrategies",
        "auto.offset.reset": "Consumer.Offsets.Initial",
        "enable.auto.commit": "Consumer.Offsets.AutoCommit.Enable",
        "isolation.level": "Consumer.IsolationLevel",
        "fetch.min.bytes": "Consumer.Fetch.Min",
        "fetch.max.bytes": "Consumer.Fetch.Max",
        "max.partition.fetch.bytes": "Consumer.Fetch.Default",
        "metadata.max.age.ms": "Metadata.RefreshFrequency",
        "max.request.size": "Producer.MaxMessageBytes",
        "enable.idempotence": "Producer.Idempotent",
        "transaction.timeout.ms": "Producer.Transaction.Timeout",
        "delivery.timeout.ms": "Producer.Retry.Max times Producer.Timeout",
        "request.timeout.ms": "Net.ReadTimeout",
        "compression.type": "Producer.Compression",
        "linger.ms": "Producer.Flush.Frequency",
        "batch.size": "Producer.Flush.Bytes",
    },
    FRANZ_GO: {
        "session.timeout.ms": "kgo.SessionTimeout",
        "heartbeat.interval.ms": "kgo.HeartbeatInterval",
        "max.poll.interval.ms": "kgo.RebalanceTimeout",
        "max.poll.records": "the number in PollRecords",
        "group.instance.id": "kgo.InstanceID",
        "partition.assignment.strategy": "kgo.Balancers",
        "auto.offset.reset": "kgo.ConsumeResetOffset",
        "enable.auto.commit=false": "kgo.DisableAutoCommit",
        "enable.auto.commit=true": "kgo.AutoCommitMarks",
        "isolation.level": "kgo.FetchIsolationLevel",
        "fetch.min.bytes": "kgo.FetchMinBytes",
        "fetch.max.bytes": "kgo.FetchMaxBytes",
        "max.partition.fetch.bytes": "kgo.FetchMaxPartitionBytes",
        "metadata.max.age.ms": "kgo.MetadataMaxAge",
        "max.request.size": "kgo.ProducerBatchMaxBytes",
        "transaction.timeout.ms": "kgo.TransactionTimeout",
        "delivery.timeout.ms": "kgo.RecordDeliveryTimeout",
        "request.timeout.ms": "kgo.ProduceRequestTimeout",
        "compression.type": "kgo.ProducerBatchCompression",
        "linger.ms": "kgo.ProducerLinger",
        "batch.size": "kgo.ProducerBatchMaxBytes",
    },
    KAFKA_GO: {
        "session.timeout.ms": "ReaderConfig.SessionTimeout",
        "heartbeat.interval.ms": "ReaderConfig.HeartbeatInterval",
        "max.poll.interval.ms": "ReaderConfig.RebalanceTimeout",
        "max.poll.records": "ReaderConfig.QueueCapacity",
        "partition.assignment.strategy": "ReaderConfig.GroupBalancers",
        "auto.offset.reset": "ReaderConfig.StartOffset",
        "isolation.level": "ReaderConfig.IsolationLevel",
        "fetch.min.bytes": "ReaderConfig.MinBytes",
        "fetch.max.bytes": "ReaderConfig.MaxBytes",
        "max.partition.fetch.bytes": "ReaderConfig.MaxBytes",
        "max.request.size": "Writer.BatchBytes",
        "delivery.timeout.ms": "Writer.MaxAttempts times Writer.WriteTimeout",
        "request.timeout.ms": "Writer.WriteTimeout",
        "compression.type": "Writer.Compression",
        "linger.ms": "Writer.BatchTimeout",
        "batch.size": "Writer.BatchSize",
    },
    KAFKAJS: {
        "session.timeout.ms": "sessionTimeout",
        "heartbeat.interval.ms": "heartbeatInterval",
        "max.poll.interval.ms": "rebalanceTimeout",
        "max.poll.records": "maxBytesPerPartition",
        "partition.assignment.strategy": "partitionAssigners",
        "auto.offset.reset": "fromBeginning",
        "enable.auto.commit": "autoCommit",
        "fetch.min.bytes": "minBytes",
        "fetch.max.bytes": "maxBytes",
        "max.partition.fetch.bytes": "maxBytesPerPartition",
        "metadata.max.age.ms": "metadataMaxAge",
        "enable.idempotence": "idempotent",
        "transaction.timeout.ms": "transactionTimeout",
        "request.timeout.ms": "requestTimeout",
        "compression.type": "compression",
    },
    AIOKAFKA: {"delivery.timeout.ms": "request_timeout_ms", "batch.size": "max_batch_size"},
}
"""What a library calls a property that has another name there; what it does not have keeps the name of Kafka."""
_KNOWN: Final = frozenset(name for names in _NAMES.values() for name in names)
_OTHERWISE: Final = re.compile(r"(?P<own>\S+) \(librdkafka: (?P<other>[^()]*(?:\(\)[^()]*)?)\)")
_EACH: Final = re.compile(r"(?P<own>\S+) \(Java\), (?P<other>\S+) \(librdkafka\)")
_OF_JAVA: Final = re.compile(r" \((?:Spring|Kafka Streams|Java)\b[^()]*(?:\(\)[^()]*)*\)")
_PROPERTY: Final = re.compile(
    r"(?<![\w.])(?:{})(?!\w|\.\w)".format("|".join(sorted(map(re.escape, _KNOWN), key=len, reverse=True)))
)


def library_of(software: str | None, client_id: str | None) -> str | None:
    """The library of a client.

    Args:
        software: its name in ApiVersions, if that was seen.
        client_id: of its requests.

    Returns:
        One of :data:`LIBRARIES`; None if it is not known, or none of these.
    """
    if software:
        name = software.lower()
        return next((library for known, library in _SOFTWARE.items() if name.startswith(known)), None)
    return next((library for known, library in _DEFAULT_IDS if client_id and known.match(client_id)), None)


def spoken(text: str, library: str | None) -> str:
    """A text with the names that a library has for properties; as it is where the library is not known."""
    if library not in LIBRARIES:
        return text
    for phrase, by_library in _PHRASES.items():
        text = text.replace(phrase, by_library[library])
    for pattern in (_OTHERWISE, _EACH):
        text = pattern.sub(r"\g<other>" if library == LIBRDKAFKA else r"\g<own>", text)
    if library == JAVA:
        return text
    text = _OF_JAVA.sub("", text)
    return _PROPERTY.sub(lambda found: _name(found[0], library), text)


def _name(name: str, library: str) -> str:
    own = _NAMES.get(library, {}).get(name)
    if own is None and library in (KAFKA_PYTHON, AIOKAFKA):
        return name.replace(".", "_").replace("=false", "=False")
    return own or name
