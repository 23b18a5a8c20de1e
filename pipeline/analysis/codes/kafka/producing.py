"""Codes about the records that a producer writes."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.rows import RETRIES, only_at, row
from pipeline.analysis.codes.model import (
    APPLICATION,
    CLIENT,
    CONFIGURATION,
    HEALTH,
    LOSS,
    NO_ONE,
    OPERATOR,
    REFUSAL,
    TRANSIENT,
)

_TOO_LARGE: Final = (
    "raise the topic's limit with `kafka-configs.sh --bootstrap-server BROKER --alter --entity-type topics "
    "--entity-name {topic} --add-config max.message.bytes=N`, or stop the producer."
)
_TOO_LARGE_FIX: Final = (
    "keep max.request.size and batch.size (librdkafka: message.max.bytes, batch.size) below max.message.bytes of the "
    "topic, and send large payloads by reference."
)
_REPLICAS: Final = (
    "bring back the brokers that hold replicas of the topic (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--under-min-isr-partitions`); until then acks=all cannot be met."
)
_REPLICAS_FIX: Final = (
    "set replication.factor above min.insync.replicas, and a delivery.timeout.ms (librdkafka: message.timeout.ms) that "
    "outlasts a broker's restart."
)

ROWS: Final = (
    row(
        KafkaError.CORRUPT_MESSAGE,
        LOSS,
        APPLICATION,
        "The checksum, the size or the key of a record batch is wrong.",
        "stop the client if its batches fail again: what damages these bytes damages others.",
        "check the memory and the network card of the client's host, and update its library; a topic with "
        "cleanup.policy=compact also answers this to a record without a key (old brokers).",
        area="checksum",
        is_retried=True,
    ),
    row(
        KafkaError.CORRUPT_MESSAGE,
        LOSS,
        OPERATOR,
        "The broker read a damaged batch from its own log.",
        "check the log on the broker's disk with `kafka-dump-log.sh --deep-iteration --files LOG_FILE`; a replica that "
        "is sound can take over as leader.",
        "replace the disk, and keep three replicas of the topic.",
        area="checksum",
        is_retried=True,
        api=ApiKey.FETCH,
    ),
    row(
        KafkaError.MESSAGE_TOO_LARGE,
        REFUSAL,
        APPLICATION,
        "A record batch is larger than the topic's max.message.bytes; the broker did not write it.",
        _TOO_LARGE,
        _TOO_LARGE_FIX,
        area="record",
    ),
    row(
        KafkaError.RECORD_LIST_TOO_LARGE,
        REFUSAL,
        APPLICATION,
        "A record batch is larger than a log segment (segment.bytes); the broker did not write it.",
        "let the producer write smaller batches, or raise segment.bytes of the topic: `kafka-configs.sh "
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name {topic} --add-config segment.bytes=N`.",
        _TOO_LARGE_FIX,
        area="record",
    ),
    row(
        KafkaError.NOT_ENOUGH_REPLICAS,
        TRANSIENT,
        OPERATOR,
        "Fewer replicas are in sync than min.insync.replicas; the broker did not write the records.",
        _REPLICAS,
        _REPLICAS_FIX,
        area="replicas",
        is_retried=True,
    ),
    row(
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        TRANSIENT,
        OPERATOR,
        "The leader wrote the records, but fewer replicas than min.insync.replicas have them; a repeat writes them "
        "twice unless the producer is idempotent.",
        _REPLICAS,
        f"{_REPLICAS_FIX[:-1]}; enable.idempotence=true keeps repeats from being written twice.",
        area="replicas",
        is_retried=True,
    ),
    row(
        KafkaError.INVALID_REQUIRED_ACKS,
        CONFIGURATION,
        APPLICATION,
        "The producer asks for a number of acknowledgements that does not exist.",
        "restart the producer with acks=all.",
        "set acks (librdkafka: request.required.acks) to 0, 1 or all (-1).",
        area="record",
    ),
    row(
        KafkaError.INVALID_TIMESTAMP,
        REFUSAL,
        APPLICATION,
        "The timestamp of a record is too far from the broker's clock.",
        "stop the producer or let it write the present time.",
        "write milliseconds, not seconds or microseconds, as the record's timestamp; or widen "
        "message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic, or set "
        "message.timestamp.type=LogAppendTime.",
        area="record",
    ),
    row(
        KafkaError.INVALID_RECORD,
        REFUSAL,
        APPLICATION,
        "The broker's check of a record failed; the batch was not written.",
        "stop the producer and keep what it could not write.",
        "give each record a key, without which a topic with cleanup.policy=compact takes none, or write to a topic "
        "with cleanup.policy=delete.",
        area="record",
    ),
    row(
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        CONFIGURATION,
        APPLICATION,
        "The broker cannot take this compression in this version of the request: zstd needs Kafka 2.1.",
        "set compression.type of the producer to one that the brokers know, such as lz4.",
        "update the brokers, or keep zstd (Kafka 2.1) out of clients that speak to older ones.",
        area="record",
    ),
    row(
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        CONFIGURATION,
        APPLICATION,
        "The topic holds zstd batches, and the consumer asks in a version of Fetch (below 10) from before zstd.",
        "update the consumer's library (kafka-clients 2.1 or later; librdkafka 1.0 or later, built with zstd): it "
        "gets nothing from these partitions.",
        "update consumers before producers begin to write zstd, or let the topic recompress: `kafka-configs.sh "
        "--bootstrap-server BROKER --alter --entity-type topics --entity-name {topic} --add-config "
        "compression.type=lz4`, which holds for new records only.",
        area="record",
        api=ApiKey.FETCH,
    ),
    row(
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        CONFIGURATION,
        OPERATOR,
        "The topic's message format is too old for what the request needs: timestamps, headers, idempotence or "
        "transactions.",
        "write and read this topic without the feature until its format is raised.",
        "raise log.message.format.version (message.format.version of the topic) to 0.11 or later; Kafka 4 always uses "
        "format v2.",
    ),
    row(
        KafkaError.KAFKA_STORAGE_ERROR,
        TRANSIENT,
        OPERATOR,
        "The broker could not read or write the partition's log directory.",
        "look at the broker's disk and its server.log, and restart it once the disk is sound.",
        "watch log.dirs for space and errors; retries and delivery.timeout.ms (librdkafka: message.timeout.ms) long "
        "enough for leadership to move.",
        area="storage",
        is_retried=True,
    ),
    row(
        KafkaError.LOG_DIR_NOT_FOUND,
        CONFIGURATION,
        OPERATOR,
        "The broker has no log directory of this path, or it is offline.",
        "name a directory that the broker's log.dirs lists: `kafka-log-dirs.sh --bootstrap-server BROKER --describe`.",
        "replace a directory that failed, and restart the broker.",
    ),
    row(
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        LOSS,
        APPLICATION,
        "The sequence number of a batch does not follow the last one: batches before it are missing.",
        "restart the producer: it cannot continue with this producer id.",
        "look for earlier errors of this producer (delivery.timeout.ms passed, batches expired) and treat a failed "
        "send as lost; max.in.flight.requests.per.connection at most 5 with enable.idempotence=true.",
        area="sequence",
    ),
    *only_at(
        row(
            KafkaError.DUPLICATE_SEQUENCE_NUMBER,
            HEALTH,
            NO_ONE,
            "The broker already has this batch: an earlier attempt was written although its answer was lost.",
        ),
        ApiKey.PRODUCE,
    ),
    row(
        KafkaError.UNKNOWN_PRODUCER_ID,
        TRANSIENT,
        CLIENT,
        "The broker no longer knows the producer id: retention deleted all that this producer wrote, or its id "
        "expired.",
        "nothing if the producer was idle for longer than the topic's retention: it continues with a new sequence.",
        "use brokers and clients of Kafka 2.5 or later (KIP-360), or set a retention longer than the producer pauses.",
        area="sequence",
    ),
    row(
        KafkaError.REQUEST_TIMED_OUT,
        TRANSIENT,
        OPERATOR,
        "The broker did not finish the request within the time that the request allows.",
        f"{RETRIES[:-1]}; if it stays, look at the load of the broker that answered.",
        "watch RequestHandlerAvgIdlePercent and the disks of the brokers.",
        area="timeout",
        is_retried=True,
    ),
    row(
        KafkaError.REQUEST_TIMED_OUT,
        TRANSIENT,
        OPERATOR,
        "The replicas did not confirm the records within request.timeout.ms; the leader may have written them.",
        "look for slow replicas (`kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions`)"
        "; a repeat writes the records twice unless the producer is idempotent.",
        "set enable.idempotence=true, and a delivery.timeout.ms (librdkafka: message.timeout.ms) longer than "
        "replicas lag.",
        area="timeout",
        is_retried=True,
        api=ApiKey.PRODUCE,
    ),
    row(
        KafkaError.REQUEST_TIMED_OUT,
        TRANSIENT,
        OPERATOR,
        "The controller did not create or change the topic in time; it may still do so.",
        "list the topics before repeating it: `kafka-topics.sh --bootstrap-server BROKER --list`.",
        "raise default.api.timeout.ms of the admin client, and reduce the load of the controller.",
        area="timeout",
        is_retried=True,
        api=ApiKey.CREATE_TOPICS,
    ),
    row(
        KafkaError.REQUEST_TIMED_OUT,
        TRANSIENT,
        OPERATOR,
        "The offsets topic did not take the commit in time: too few of its replicas are in sync, or they are slow.",
        "look at the replicas of __consumer_offsets: `kafka-topics.sh --bootstrap-server BROKER --describe --topic "
        "__consumer_offsets --under-min-isr-partitions`.",
        "keep three replicas of __consumer_offsets on brokers that keep up; offsets.commit.timeout.ms (5000) of the "
        "brokers bounds the wait.",
        area="timeout",
        is_retried=True,
        api=ApiKey.OFFSET_COMMIT,
    ),
)
