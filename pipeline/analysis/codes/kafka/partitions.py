"""Codes about topics, partitions, their leaders and what a consumer fetches."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.rows import ASKS_METADATA, BROKER_LOG, RETRIES, only_at, row
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

_NO_TOPIC: Final = "create the topic, or correct its name in the client's configuration."
_NO_TOPIC_FIX: Final = "create topics before the clients that use them start."
_LEADERLESS: Final = (
    "start the broker that holds the partition (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--unavailable-partitions` names leader and replicas)."
)
_LEADERLESS_FIX: Final = "keep three replicas of each topic on different racks, so that one broker may go."
_OLD_METADATA_FIX: Final = (
    "update the library of a client that does not refresh its metadata; metadata.max.age.ms (librdkafka: "
    "topic.metadata.refresh.interval.ms) bounds how old metadata gets."
)
_NEW_SESSION: Final = "nothing: the client begins a new fetch session."
_SESSIONS_FIX: Final = (
    "use one consumer instead of one for each read; raise max.incremental.fetch.session.cache.slots (1000) of the "
    "brokers if many consumers share them."
)

ROWS: Final = (
    row(
        KafkaError.OFFSET_OUT_OF_RANGE,
        LOSS,
        APPLICATION,
        "The offset is not in the log: it is before the log's start or beyond its end.",
        "compare it with the log's bounds: `kafka-get-offsets.sh --bootstrap-server BROKER --topic {topic}`.",
        "set a retention longer than the longest pause of the reader.",
        area="offset",
    ),
    row(
        KafkaError.OFFSET_OUT_OF_RANGE,
        LOSS,
        APPLICATION,
        "The position of the reader is not in the log: retention deleted it, or the log ends before it.",
        "compare it with the log's bounds (`kafka-get-offsets.sh --bootstrap-server BROKER --topic {topic}`): below "
        "the start, retention deleted what was not read; beyond the end, the log lost records or the position was "
        "never in it.",
        "set retention.ms and retention.bytes longer than the longest pause of the reader; "
        "unclean.leader.election.enable="
        "false; auto.offset.reset=none where neither skipping nor reading again is right.",
        area="offset",
        api=ApiKey.FETCH,
    ),
    row(
        KafkaError.OFFSET_OUT_OF_RANGE,
        REFUSAL,
        APPLICATION,
        "The offset up to which records are to be deleted is beyond the partition's high watermark.",
        "name an offset up to the high watermark, or -1 for all.",
        "ask for the end (`kafka-get-offsets.sh --bootstrap-server BROKER --topic {topic}`) before deleting.",
        area="offset",
        api=ApiKey.DELETE_RECORDS,
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        REFUSAL,
        APPLICATION,
        "The broker has no such topic or partition; the client may not be allowed to see it either.",
        _NO_TOPIC,
        _NO_TOPIC_FIX,
        area="topic",
        is_retried=True,
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        REFUSAL,
        APPLICATION,
        "The cluster has no topic of this name.",
        "create the topic, or correct its name in the client's configuration. A topic that was just created answers "
        "this for some moments.",
        f"{_NO_TOPIC_FIX[:-1]}; with auto.create.topics.enable the first requests fail, too.",
        area="topic",
        is_retried=True,
        api=ApiKey.METADATA,
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        REFUSAL,
        APPLICATION,
        "The broker holds no such partition: the records were not written.",
        f"{_NO_TOPIC[:-1]}; see whether the topic was deleted while the producer ran.",
        _NO_TOPIC_FIX,
        area="topic",
        is_retried=True,
        api=ApiKey.PRODUCE,
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        REFUSAL,
        APPLICATION,
        "The coordinator does not know the topic whose offset is committed: it was deleted, or its name is wrong.",
        "take the topic out of the subscription, or create it; its commits are refused until then.",
        "delete a topic only after the groups that read it have stopped.",
        area="topic",
        is_retried=True,
        api=ApiKey.OFFSET_COMMIT,
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
        HEALTH,
        NO_ONE,
        "The topic is already gone.",
        area="topic",
        api=ApiKey.DELETE_TOPICS,
    ),
    row(
        KafkaError.INVALID_FETCH_SIZE,
        CONFIGURATION,
        APPLICATION,
        "The consumer asks for an impossible number of bytes.",
        "restart the consumer with positive sizes.",
        "set max.partition.fetch.bytes and fetch.max.bytes (librdkafka: fetch.message.max.bytes) above 0.",
    ),
    row(
        KafkaError.LEADER_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "The partition has no leader at the moment: an election is under way, or all its replicas are down.",
        f"{ASKS_METADATA[:-1]}. If it stays, {_LEADERLESS}",
        _LEADERLESS_FIX,
        area="leader",
        is_retried=True,
    ),
    row(
        KafkaError.NOT_LEADER_OR_FOLLOWER,
        TRANSIENT,
        CLIENT,
        "The broker that was asked does not lead the partition.",
        ASKS_METADATA,
        _OLD_METADATA_FIX,
        area="leader",
        is_retried=True,
    ),
    row(
        KafkaError.BROKER_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "The broker that the request is about is not running.",
        "start that broker, or ask another one.",
        "remove brokers that are gone from the configuration of tools and clients.",
        is_retried=True,
    ),
    row(
        KafkaError.REPLICA_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "The replica that the request needs is not on this broker, or not running.",
        f"{ASKS_METADATA[:-1]}. If it stays, {_LEADERLESS}",
        _LEADERLESS_FIX,
        area="leader",
        is_retried=True,
    ),
    row(
        KafkaError.REPLICA_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "One of the partition's replicas is on a broker that is not running; the partition has a leader and works.",
        "start that broker: `kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions`.",
        _LEADERLESS_FIX,
        area="leader",
        api=ApiKey.METADATA,
    ),
    row(
        KafkaError.NETWORK_EXCEPTION,
        TRANSIENT,
        OPERATOR,
        "A broker lost its connection to another server before it had the answer.",
        RETRIES,
        "look for cut connections between the brokers.",
        is_retried=True,
    ),
    row(
        KafkaError.LISTENER_NOT_FOUND,
        CONFIGURATION,
        OPERATOR,
        "The leader has no listener of the name by which the client reached this broker.",
        "compare listeners and advertised.listeners of the leader with those of the broker that answered.",
        "give all brokers listeners of the same names (advertised.listeners).",
        area="leader",
        is_retried=True,
    ),
    row(
        KafkaError.OFFSET_NOT_AVAILABLE,
        TRANSIENT,
        NO_ONE,
        "The leader is new and does not know its high watermark yet.",
        RETRIES,
        _LEADERLESS_FIX,
        area="leader",
        is_retried=True,
    ),
    row(
        KafkaError.FENCED_LEADER_EPOCH,
        TRANSIENT,
        CLIENT,
        "The client goes by a leader epoch that is over: the partition has a newer leader.",
        ASKS_METADATA,
        f"{_OLD_METADATA_FIX[:-1]}. After an unclean election (unclean.leader.election.enable) the client may have "
        "read records that are gone.",
        area="leader epoch",
        is_retried=True,
    ),
    row(
        KafkaError.UNKNOWN_LEADER_EPOCH,
        TRANSIENT,
        NO_ONE,
        "The client knows a newer leader epoch than the broker that it asked: the broker is behind for a moment.",
        RETRIES,
        "if it stays, look whether this broker is cut off from the controller.",
        area="leader epoch",
        is_retried=True,
    ),
    row(
        KafkaError.INVALID_TOPIC_EXCEPTION,
        REFUSAL,
        APPLICATION,
        "The name is not allowed for a topic, or the topic is internal and may not be written.",
        "correct the topic's name: at most 249 letters, digits, '.', '_' and '-'.",
        "do not write to internal topics such as __consumer_offsets.",
        area="topic",
    ),
    row(
        KafkaError.UNKNOWN_TOPIC_ID,
        TRANSIENT,
        CLIENT,
        "The broker has no topic of this id: it was deleted (and maybe created again), or is new to this broker.",
        f"{ASKS_METADATA[:-1]}. If it stays, restart the client: it holds the id of a topic that was deleted.",
        "delete records (`kafka-delete-records.sh`) instead of a topic that is in use.",
        area="topic id",
        is_retried=True,
    ),
    row(
        KafkaError.INCONSISTENT_TOPIC_ID,
        TRANSIENT,
        CLIENT,
        "The id and the log on the broker belong to different topics of one name: it was deleted and created again.",
        f"{ASKS_METADATA[:-1]}. If it stays, restart the client.",
        "delete records (`kafka-delete-records.sh`) instead of a topic that is in use.",
        area="topic id",
        is_retried=True,
    ),
    row(
        KafkaError.FETCH_SESSION_ID_NOT_FOUND,
        TRANSIENT,
        CLIENT,
        "The broker no longer keeps this fetch session: it was pushed out of the cache, or the broker restarted.",
        _NEW_SESSION,
        _SESSIONS_FIX,
        area="fetch session",
        is_retried=True,
    ),
    row(
        KafkaError.INVALID_FETCH_SESSION_EPOCH,
        TRANSIENT,
        CLIENT,
        "The number of this fetch does not follow the last one of its session.",
        _NEW_SESSION,
        "look for lost answers between client and broker; a proxy must keep a client on one broker.",
        area="fetch session",
        is_retried=True,
    ),
    row(
        KafkaError.FETCH_SESSION_TOPIC_ID_ERROR,
        TRANSIENT,
        CLIENT,
        "A fetch session mixes requests with and without topic ids, as during an upgrade of brokers.",
        _NEW_SESSION,
        "finish the upgrade of the brokers.",
        area="topic id",
        is_retried=True,
    ),
    row(
        KafkaError.OFFSET_MOVED_TO_TIERED_STORAGE,
        TRANSIENT,
        OPERATOR,
        "A replica asks for records that the leader keeps in remote storage only; it continues from there.",
        f"nothing while it passes; if it stays, {BROKER_LOG}",
        "keep the remote storage of tiered topics within reach of all brokers.",
    ),
    row(
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "No replica of the partition may become leader.",
        _LEADERLESS,
        _LEADERLESS_FIX,
        is_retried=True,
    ),
    row(
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "The preferred leader of the partition is not running or not in sync.",
        "wait until that broker is in sync, then elect again.",
        "start the broker that should lead.",
        is_retried=True,
    ),
    *only_at(
        row(
            KafkaError.ELECTION_NOT_NEEDED,
            HEALTH,
            NO_ONE,
            "The partition already has the leader that was asked for.",
        ),
        ApiKey.ELECT_LEADERS,
    ),
)
