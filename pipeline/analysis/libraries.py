"""Client libraries of Kafka, and texts in the words of each: a property has another name in each of them.

Texts are written with the names of Kafka's own documentation, which are those of the Java client. What librdkafka calls
otherwise is behind a name as ``(librdkafka: NAME)``. :func:`spoken` turns a text into the words of one library, if
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
KRAFKA: Final = "krafka"
LIBRARIES: Final = (JAVA, LIBRDKAFKA, SARAMA, FRANZ_GO, KAFKA_GO, KAFKAJS, KAFKA_PYTHON, AIOKAFKA, KRAFKA)
"""Libraries in whose words a text can be given."""

_SOFTWARE: Final[Mapping[str, str]] = {
    "apache-kafka-java": JAVA, "librdkafka": LIBRDKAFKA, "confluent-kafka": LIBRDKAFKA, "sarama": SARAMA,
    "kgo": FRANZ_GO, "kafka-python": KAFKA_PYTHON, "aiokafka": AIOKAFKA, "kafkajs": KAFKAJS,
    "segmentio/kafka-go": KAFKA_GO, "krafka": KRAFKA,
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
STORED_BY: Final = (
    "commitSync with a map in Java, enable.auto.offset.store=false with offsets_store in librdkafka, resolveOffset in "
    "KafkaJS, CommitMessages in kafka-go"
)
"""How an application commits what it has processed and no more."""
COOPERATIVELY: Final = "a cooperative partition.assignment.strategy or group.protocol=consumer (KIP-848)"
COOPERATIVE: Final = "partition.assignment.strategy=cooperative-sticky or group.protocol=consumer"
COOPERATIVE_ASSIGNOR: Final = "a cooperative assignor (partition.assignment.strategy) or group.protocol=consumer"
"""How members read on while their group rebalances."""
CHECKS_CRCS: Final = "check.crcs of consumers stays true"
"""What lets consumers notice records that were changed on the way."""
OR_CONSUMER_PROTOCOL: Final = ", or group.protocol=consumer (KIP-848),"
_OF_ANOTHER: Final = "a client library with cooperative rebalances, which {} does not have,"
_WITHOUT: Final = {
    SARAMA: "NewBalanceStrategyCooperativeSticky in Consumer.Group.Rebalance.GroupStrategies, if the release has it,",
    FRANZ_GO: "kgo.CooperativeStickyBalancer among kgo.Balancers",
    KAFKA_GO: _OF_ANOTHER.format("kafka-go"),
    KAFKAJS: _OF_ANOTHER.format("KafkaJS"),
    AIOKAFKA: _OF_ANOTHER.format("aiokafka"),
    KRAFKA: "PartitionAssignmentStrategy::CooperativeSticky or GroupProtocol::Consumer",
}
_PHRASES: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys((COOPERATIVELY, COOPERATIVE, COOPERATIVE_ASSIGNOR), _WITHOUT),
    OR_CONSUMER_PROTOCOL: {**dict.fromkeys(_WITHOUT, ""), KRAFKA: ", or GroupProtocol::Consumer (KIP-848),"},
    CHECKS_CRCS: {
        LIBRDKAFKA: "set check.crcs=true for consumers (it is false by default)",
        SARAMA: "Sarama's consumers check each batch",
        FRANZ_GO: "consumers do so as long as kgo.DisableFetchCRCValidation is not set",
        KAFKA_GO: "have the records checked by a consumer of another library",
        KAFKAJS: "have the records checked by a consumer of another library",
        KAFKA_PYTHON: "check_crcs of consumers stays True",
        AIOKAFKA: "check_crcs of consumers stays True",
        KRAFKA: "krafka's consumers check each batch",
    },
    WHEN_REVOKED: {
        JAVA: "ConsumerRebalanceListener.onPartitionsRevoked",
        LIBRDKAFKA: "rebalance_cb; on_revoke in Python",
        SARAMA: "return from ConsumeClaim when the session's Context() ends, wait for workers in Cleanup",
        FRANZ_GO: "kgo.OnPartitionsRevoked, with kgo.BlockRebalanceOnPoll",
        KAFKA_GO: "the context of Generation.Start ends",
        KAFKAJS: "isRunning() and isStale() in eachBatch",
        KAFKA_PYTHON: "ConsumerRebalanceListener.on_partitions_revoked",
        AIOKAFKA: "ConsumerRebalanceListener.on_partitions_revoked",
        KRAFKA: "on_partitions_revoked of the rebalance_listener",
    },
    STORED_BY: {
        JAVA: "commitSync with a map; Spring: Acknowledgment.acknowledge()",
        LIBRDKAFKA: "enable.auto.offset.store=false with offsets_store",
        SARAMA: "MarkMessage on the session of this ConsumeClaim; Commit() if Consumer.Offsets.AutoCommit.Enable=false",
        FRANZ_GO: "kgo.AutoCommitMarks with MarkCommitRecords, or CommitRecords",
        KAFKA_GO: "Reader.CommitMessages after FetchMessage",
        KAFKAJS: "resolveOffset in eachBatch, or commitOffsets with autoCommit: false",
        KAFKA_PYTHON: "commit(offsets) with enable_auto_commit=False",
        AIOKAFKA: "commit(offsets) with enable_auto_commit=False",
        KRAFKA: "commit_offsets with enable_auto_commit(false)",
    },
}
"""What a library has in place of a phrase of the texts; the phrase stays for those that are not here."""

_OF_PYTHON: Final = {
    "sasl.jaas.config": "sasl_plain_username and sasl_plain_password",
    "beginTransaction": "begin_transaction",
    "commitTransaction": "commit_transaction",
    "abortTransaction": "abort_transaction",
    "initTransactions": "init_transactions",
    "commitAsync": "commit_async",
}
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    LIBRDKAFKA: {
        "max.poll.records": "the batch size of consume()",
        "auto.offset.reset=none": "auto.offset.reset=error",
        "beginTransaction": "begin_transaction",
        "commitTransaction": "commit_transaction",
        "abortTransaction": "abort_transaction",
        "initTransactions": "init_transactions",
        "commitAsync": "asynchronous commit",
        "TopicExistsException": "TOPIC_ALREADY_EXISTS",
    },
    SARAMA: {
        "session.timeout.ms": "Consumer.Group.Session.Timeout",
        "heartbeat.interval.ms": "Consumer.Group.Heartbeat.Interval",
        "max.poll.interval.ms": "Consumer.Group.Rebalance.Timeout",
        "max.poll.records": "ChannelBufferSize",
        "group.instance.id": "Consumer.Group.InstanceId",
        "partition.assignment.strategy": "Consumer.Group.Rebalance.GroupStrategies",
        "auto.offset.reset": "Consumer.Offsets.Initial",
        "auto.offset.reset=earliest": "Consumer.Offsets.Initial=OffsetOldest",
        "auto.offset.reset=none": "Consumer.Group.ResetInvalidOffsets=false",
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
        "group.id": "groupID",
        "transactional.id": "Producer.Transaction.ID",
        "beginTransaction": "BeginTxn",
        "commitTransaction": "CommitTxn",
        "abortTransaction": "AbortTxn",
        "initTransactions": "NewAsyncProducer",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE",
        "bootstrap.servers": "the addresses given to NewClient",
        "assign()": "ConsumePartition",
        "subscribe()": "ConsumerGroup",
        "pause()": "Pause()",
        "resume()": "Resume()",
        "close()": "Close()",
        "max.in.flight.requests.per.connection": "Net.MaxOpenRequests",
        "sasl.jaas.config": "Net.SASL.User and Net.SASL.Password",
        "sasl.mechanism": "Net.SASL.Mechanism",
        "security.protocol=SASL_SSL": "Net.TLS.Enable and Net.SASL.Enable",
        "security.protocol": "Net.TLS.Enable and Net.SASL.Enable",
        "allow.auto.create.topics": "Metadata.AllowAutoTopicCreation",
        "default.api.timeout.ms": "Admin.Timeout",
        "TopicExistsException": "ErrTopicAlreadyExists",
        "commitAsync": "Commit",
        "acks=all": "Producer.RequiredAcks=WaitForAll",
    },
    FRANZ_GO: {
        "session.timeout.ms": "kgo.SessionTimeout",
        "heartbeat.interval.ms": "kgo.HeartbeatInterval",
        "max.poll.interval.ms": "kgo.RebalanceTimeout",
        "max.poll.records": "the number in PollRecords",
        "group.instance.id": "kgo.InstanceID",
        "partition.assignment.strategy": "kgo.Balancers",
        "auto.offset.reset": "kgo.ConsumeResetOffset",
        "auto.offset.reset=earliest": "kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())",
        "auto.offset.reset=none": "kgo.ConsumeResetOffset(kgo.NoResetOffset())",
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
        "group.id": "kgo.ConsumerGroup",
        "transactional.id": "kgo.TransactionalID",
        "beginTransaction": "BeginTransaction",
        "commitTransaction": "EndTransaction(TryCommit)",
        "abortTransaction": "EndTransaction(TryAbort)",
        "max.in.flight.requests.per.connection": "kgo.MaxProduceRequestsInflightPerBroker",
        "enable.idempotence=true": "no kgo.DisableIdempotentWrite",
        "acks=all": "kgo.RequiredAcks(kgo.AllISRAcks())",
        "sasl.jaas.config": "kgo.SASL",
        "sasl.mechanism": "kgo.SASL",
        "security.protocol=SASL_SSL": "kgo.DialTLSConfig and kgo.SASL",
        "security.protocol": "kgo.DialTLSConfig and kgo.SASL",
        "allow.auto.create.topics": "kgo.AllowAutoTopicCreation",
        "default.api.timeout.ms": "kgo.RetryTimeout",
        "bootstrap.servers": "kgo.SeedBrokers",
        "TopicExistsException": "kerr.TopicAlreadyExists",
        "commitAsync": "CommitOffsets",
        "initTransactions": "its first transaction",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE (kerr)",
        "assign()": "kgo.ConsumePartitions",
        "subscribe()": "kgo.ConsumeTopics with kgo.ConsumerGroup",
        "pause()": "PauseFetchPartitions()",
        "resume()": "ResumeFetchPartitions()",
        "close()": "Close()",
    },
    KAFKA_GO: {
        "session.timeout.ms": "ReaderConfig.SessionTimeout",
        "heartbeat.interval.ms": "ReaderConfig.HeartbeatInterval",
        "max.poll.interval.ms": "ReaderConfig.RebalanceTimeout",
        "max.poll.records": "ReaderConfig.QueueCapacity",
        "partition.assignment.strategy": "ReaderConfig.GroupBalancers",
        "auto.offset.reset": "ReaderConfig.StartOffset",
        "auto.offset.reset=earliest": "ReaderConfig.StartOffset=FirstOffset",
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
        "group.id": "ReaderConfig.GroupID",
        "enable.auto.commit=true": "Reader.ReadMessage",
        "enable.auto.commit=false": "Reader.FetchMessage",
        "acks=all": "Writer.RequiredAcks=RequireAll",
        "sasl.jaas.config": "Transport.SASL",
        "sasl.mechanism": "Transport.SASL",
        "security.protocol=SASL_SSL": "Transport.TLS and Transport.SASL",
        "security.protocol": "Transport.TLS and Transport.SASL",
        "allow.auto.create.topics": "Writer.AllowAutoTopicCreation",
        "bootstrap.servers": "ReaderConfig.Brokers",
        "TopicExistsException": "kafka.TopicAlreadyExists",
        "commitAsync": "CommitMessages",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE",
        "initTransactions": "InitProducerID",
        "group.instance.id": "static membership, which kafka-go does not have,",
        "assign()": "ReaderConfig.Partition",
        "subscribe()": "ReaderConfig.GroupID",
        "pause()": "pause",
        "resume()": "resume",
        "close()": "Close()",
    },
    KAFKAJS: {
        "session.timeout.ms": "sessionTimeout",
        "heartbeat.interval.ms": "heartbeatInterval",
        "max.poll.interval.ms": "rebalanceTimeout",
        "max.poll.records": "maxBytesPerPartition",
        "partition.assignment.strategy": "partitionAssigners",
        "auto.offset.reset": "fromBeginning",
        "auto.offset.reset=earliest": "fromBeginning: true",
        "enable.auto.commit": "autoCommit",
        "fetch.min.bytes": "minBytes",
        "fetch.max.bytes": "maxBytes",
        "max.partition.fetch.bytes": "maxBytesPerPartition",
        "metadata.max.age.ms": "metadataMaxAge",
        "enable.idempotence": "idempotent",
        "transaction.timeout.ms": "transactionTimeout",
        "request.timeout.ms": "requestTimeout",
        "compression.type": "compression",
        "group.id": "groupId",
        "transactional.id": "transactionalId",
        "beginTransaction": "transaction()",
        "commitTransaction": "commit()",
        "abortTransaction": "abort()",
        "max.in.flight.requests.per.connection": "maxInFlightRequests",
        "acks=all": "acks: -1",
        "sasl.jaas.config": "sasl",
        "security.protocol=SASL_SSL": "ssl and sasl",
        "security.protocol": "ssl and sasl",
        "allow.auto.create.topics": "allowAutoTopicCreation",
        "default.api.timeout.ms": "requestTimeout",
        "bootstrap.servers": "brokers",
        "TopicExistsException": "TOPIC_ALREADY_EXISTS",
        "commitAsync": "commitOffsets",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE",
        "initTransactions": "transaction()",
        "group.instance.id": "static membership, which KafkaJS does not have,",
        "isolation.level=read_uncommitted": "readUncommitted: true",
        "close()": "disconnect()",
    },
    KAFKA_PYTHON: {
        **_OF_PYTHON,
        "TopicExistsException": "TopicAlreadyExistsError",
        "TransactionAbortableException": "TransactionAbortableError",
    },
    AIOKAFKA: {
        **_OF_PYTHON,
        "delivery.timeout.ms": "request_timeout_ms",
        "batch.size": "max_batch_size",
        "TopicExistsException": "TopicAlreadyExistsError",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE",
        "initTransactions": "start()",
        "commitAsync": "commit",
        "close()": "stop()",
        **{name: name for name in ("allow.auto.create.topics", "default.api.timeout.ms")},
    },
    KRAFKA: {
        "auto.offset.reset=earliest": "auto_offset_reset(AutoOffsetReset::Earliest)",
        "auto.offset.reset=none": "auto_offset_reset(AutoOffsetReset::None)",
        "enable.auto.commit=true": "enable_auto_commit(true)",
        "enable.auto.commit=false": "enable_auto_commit(false)",
        "enable.idempotence=true": "idempotent(true)",
        "enable.idempotence": "idempotent",
        "compression.type": "compression",
        "acks=all": "acks(Acks::All)",
        "isolation.level=read_uncommitted": "isolation_level(IsolationLevel::ReadUncommitted)",
        "max.in.flight.requests.per.connection": "max_in_flight_requests",
        "group.id": "group given to consumer()",
        "transactional.id": "id given to transactional()",
        "bootstrap.servers": "the addresses given to Kafka::builder()",
        "sasl.jaas.config": "security",
        "sasl.mechanism": "security",
        "security.protocol=SASL_SSL": "security",
        "security.protocol": "security",
        "initTransactions": "build_transactional",
        "commitTransaction": "commit",
        "abortTransaction": "abort",
        "commitAsync": "commit_offsets",
        "TopicExistsException": "TOPIC_ALREADY_EXISTS",
        "TransactionAbortableException": "TRANSACTION_ABORTABLE",
    },
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
        text = text.replace(phrase, by_library.get(library, phrase))
    for pattern in (_OTHERWISE, _EACH):
        text = pattern.sub(r"\g<other>" if library == LIBRDKAFKA else r"\g<own>", text)
    if library == JAVA:
        return text
    text = _OF_JAVA.sub("", text)
    return _PROPERTY.sub(lambda found: _name(found[0], library), text)


def _name(name: str, library: str) -> str:
    names = _NAMES.get(library, {})
    if name in names:
        return names[name]
    if library in (KAFKA_PYTHON, AIOKAFKA) and "." in name:
        return name.replace(".", "_").replace("=false", "=False").replace("=true", "=True")
    if library == KRAFKA and "." in name:
        return name.removesuffix(".ms").replace(".", "_")
    own, equals, value = name.partition("=")
    return names.get(own, own) + equals + value
