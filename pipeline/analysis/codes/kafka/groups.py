"""Codes of coordinators about groups, their members and their commits."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.rows import ASKS_COORDINATOR, RETRIES, only_at, row
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
    at,
)
from pipeline.analysis.libraries import WHEN_REVOKED

_COORDINATOR: Final = (
    "If it stays, look at the leader of the coordinator's partition (`kafka-topics.sh --bootstrap-server BROKER "
    "--describe --topic __consumer_offsets`, or __transaction_state)."
)
POLL_FIX: Final = (
    "keep the work between two polls below max.poll.interval.ms (fewer records by max.poll.records), and raise "
    "session.timeout.ms for a client that pauses."
)
_LATE_COMMIT: Final = (
    "let the client rejoin (a poll does it), or restart it: what it processed since its last accepted commit is read "
    "again."
)
_LATE_COMMIT_FIX: Final = (
    "commit only while the member owns the partition: finish or drop the work when a partition is revoked "
    f"({WHEN_REVOKED}), and keep the work between two polls below max.poll.interval.ms (max.poll.records)."
)
_COMMITS: Final = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
_WHO_ELSE: Final = (
    "`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group} --members` lists all members, "
    "also those that were not captured"
)
INSTANCE_FIX: Final = "give each instance a group.instance.id of its own, such as the pod's name in a StatefulSet."

ROWS: Final = (
    row(
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        TRANSIENT,
        NO_ONE,
        "The coordinator reads its log after a change of leader, and answers when it has read all of it.",
        f"wait: a restart of the broker begins the loading again. {RETRIES[0].upper()}{RETRIES[1:]}",
        "keep the log cleaner at work (log.cleaner.enable=true), or loading takes minutes.",
        area="coordinator",
        is_retried=True,
    ),
    row(
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        TRANSIENT,
        OPERATOR,
        "The broker that coordinates this group or transactional id is not known: its partition has no leader, or "
        "the internal topic does not exist yet.",
        f"{RETRIES} {_COORDINATOR}",
        "run as many brokers as offsets.topic.replication.factor and transaction.state.log.replication.factor ask for.",
        area="coordinator",
        is_retried=True,
    ),
    *at(
        (*_COMMITS, ApiKey.SYNC_GROUP),
        row(
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            TRANSIENT,
            OPERATOR,
            "The coordinator could not write to __consumer_offsets: too few of its replicas are in sync, or the broker "
            "is shutting down.",
            f"{RETRIES} {_COORDINATOR}",
            "keep three replicas of __consumer_offsets, and min.insync.replicas below their number.",
            area="coordinator",
            is_retried=True,
        ),
    ),
    row(
        KafkaError.NOT_COORDINATOR,
        TRANSIENT,
        CLIENT,
        "The broker that was asked does not coordinate this group or transactional id: another one does.",
        f"{ASKS_COORDINATOR[:-1]}. If no FindCoordinator follows, restart the client.",
        "update the library of a client that keeps asking the broker that refuses it.",
        area="coordinator",
        is_retried=True,
    ),
    row(
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        REFUSAL,
        APPLICATION,
        "The text that the application stores with an offset is longer than offset.metadata.max.bytes; the offset was "
        "not committed.",
        "shorten the metadata of the commit (Java: OffsetAndMetadata; librdkafka: metadata of the partition), or raise "
        "offset.metadata.max.bytes (4096) of the brokers. A restart or a rejoin does not help.",
        "keep state that grows in a topic or store of its own, and only a reference to it in the commit.",
        area="commit",
    ),
    row(
        KafkaError.ILLEGAL_GENERATION,
        TRANSIENT,
        CLIENT,
        "The member goes by a generation of the group that is over: the group has rebalanced without it.",
        "nothing if the member rejoins: its next poll does it.",
        POLL_FIX,
        area="membership",
    ),
    *at(
        _COMMITS,
        row(
            KafkaError.ILLEGAL_GENERATION,
            LOSS,
            APPLICATION,
            "The group has rebalanced since the member read these records; its commit was not taken.",
            _LATE_COMMIT,
            _LATE_COMMIT_FIX,
            area="membership",
        ),
    ),
    row(
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        CONFIGURATION,
        APPLICATION,
        "The member offers no assignor that all members of the group know, or another protocol type.",
        "start this client with an assignor that all members of the group offer, or give it a group.id of its own.",
        "set partition.assignment.strategy alike in all members; to change it, deploy once with the old and the new "
        "one in the list, then once with the new one alone.",
        area="join",
    ),
    row(
        KafkaError.INVALID_GROUP_ID,
        CONFIGURATION,
        APPLICATION,
        "The group id is empty, or not valid for what is asked.",
        "restart the client with a group.id that is not empty.",
        "set group.id in its configuration.",
        area="join",
    ),
    row(
        KafkaError.UNKNOWN_MEMBER_ID,
        TRANSIENT,
        CLIENT,
        "The coordinator does not count the client as a member: its session ended, or it left.",
        "nothing if the member rejoins: its next poll does it.",
        POLL_FIX,
        area="membership",
    ),
    *at(
        _COMMITS,
        row(
            KafkaError.UNKNOWN_MEMBER_ID,
            LOSS,
            APPLICATION,
            "The client is no member of the group any more; its commit was not taken.",
            _LATE_COMMIT,
            _LATE_COMMIT_FIX,
            area="membership",
        ),
    ),
    row(
        KafkaError.INVALID_SESSION_TIMEOUT,
        CONFIGURATION,
        APPLICATION,
        "The session timeout of the client is outside the range that the broker allows.",
        "restart the client with a session.timeout.ms that the broker takes.",
        "set session.timeout.ms between group.min.session.timeout.ms (6000) and group.max.session.timeout.ms "
        "(1800000) of the brokers.",
        area="join",
    ),
    row(
        KafkaError.UNKNOWN_MEMBER_ID,
        TRANSIENT,
        CLIENT,
        "The coordinator removed the member between its JoinGroup and its SyncGroup; without an assignment it "
        "reads nothing.",
        f"find in the log of the group's coordinator why it removes the member; {_WHO_ELSE}.",
        "set session.timeout.ms above the time from JoinGroup to SyncGroup.",
        area="membership",
        api=ApiKey.SYNC_GROUP,
    ),
    row(
        KafkaError.ILLEGAL_GENERATION,
        TRANSIENT,
        CLIENT,
        "Another generation of the group began between the member's JoinGroup and its SyncGroup; without an "
        "assignment it reads nothing.",
        f"find in the log of the group's coordinator what begins each generation; {_WHO_ELSE}.",
        "update a client library that sends SyncGroup with the generation of an earlier JoinGroup.",
        area="membership",
        api=ApiKey.SYNC_GROUP,
    ),
    row(
        KafkaError.REBALANCE_IN_PROGRESS,
        TRANSIENT,
        CLIENT,
        "Another rebalance began between the member's JoinGroup and its SyncGroup (or, before Kafka 4, the coordinator "
        "could not write the assignment to __consumer_offsets in time); without an assignment it reads nothing.",
        "find in the log of the group's coordinator the reason of each rebalance (\"Preparing to rebalance group "
        f'{{group}} … reason"); {_WHO_ELSE}.',
        "set session.timeout.ms and max.poll.interval.ms above what the leader of the group takes to assign "
        "partitions.",
        area="membership",
        api=ApiKey.SYNC_GROUP,
    ),
    row(
        KafkaError.REBALANCE_IN_PROGRESS,
        HEALTH,
        NO_ONE,
        "The group rebalances; the member joins again.",
        "nothing: the member joins again by itself.",
        "if it never ends, look for a member that joins and does not finish.",
        api=ApiKey.HEARTBEAT,
    ),
    row(
        KafkaError.REBALANCE_IN_PROGRESS,
        TRANSIENT,
        OPERATOR,
        "The coordinator could not write the group to __consumer_offsets in time, so that the member is not let in; "
        "brokers before Kafka 4 answer a write that timed out like this.",
        f"{RETRIES} {_COORDINATOR}",
        "keep the replicas of __consumer_offsets in sync: their brokers must keep up and answer.",
        api=ApiKey.JOIN_GROUP,
    ),
    row(
        KafkaError.REBALANCE_IN_PROGRESS,
        TRANSIENT,
        CLIENT,
        "The group rebalances; the member must join again before this is accepted.",
        "nothing if the member rejoins: its next poll does it. If it does not, restart it.",
        POLL_FIX,
    ),
    *at(
        _COMMITS,
        row(
            KafkaError.REBALANCE_IN_PROGRESS,
            TRANSIENT,
            APPLICATION,
            "The group rebalances; the commit was not taken, and the member must join before it commits again.",
            "let the client poll, so that it rejoins, then commit what it still owns.",
            _LATE_COMMIT_FIX,
            area="commit",
        ),
    ),
    row(
        KafkaError.INVALID_COMMIT_OFFSET_SIZE,
        REFUSAL,
        OPERATOR,
        "The coordinator could not write the commit to the offsets topic: the record is too large for it.",
        "commit fewer partitions in one request or shorter metadata; look at max.message.bytes of __consumer_offsets.",
        "keep the brokers' default limits of __consumer_offsets, and the metadata of commits short.",
        area="commit",
    ),
    row(
        KafkaError.NON_EMPTY_GROUP,
        REFUSAL,
        APPLICATION,
        "The group has members, so that it cannot be deleted or reset.",
        "stop all members of the group and wait for its session timeout: `kafka-consumer-groups.sh --bootstrap-server "
        "BROKER --describe --group {group} --members` lists them.",
        "let tools change groups only while they are stopped.",
    ),
    row(
        KafkaError.GROUP_ID_NOT_FOUND,
        REFUSAL,
        APPLICATION,
        "The coordinator knows no group of this id and type.",
        "correct the group's name, or use the protocol of its type (`kafka-groups.sh --bootstrap-server BROKER "
        "--list`).",
        "use a group.id that no group of another type uses, and one group.protocol for all of its members.",
        area="join",
    ),
    row(
        KafkaError.GROUP_ID_NOT_FOUND,
        HEALTH,
        NO_ONE,
        "The group is already gone.",
        api=ApiKey.DELETE_GROUPS,
    ),
    *(
        row(
            KafkaError.GROUP_ID_NOT_FOUND,
            HEALTH,
            NO_ONE,
            "There is no group of this type; admin clients ask so for each type, the newest first.",
            api=api,
        )
        for api in (
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_DESCRIBE,
        )
    ),
    *only_at(
        row(
            KafkaError.MEMBER_ID_REQUIRED,
            HEALTH,
            NO_ONE,
            "The coordinator gives the client a member id, with which it joins again (KIP-394).",
        ),
        ApiKey.JOIN_GROUP,
    ),
    row(
        KafkaError.GROUP_MAX_SIZE_REACHED,
        REFUSAL,
        OPERATOR,
        "The group has as many members as the brokers allow.",
        "stop members that are not needed, or raise group.max.size of the brokers (by protocol "
        "group.consumer.max.size, group.share.max.size, group.streams.max.size).",
        "start no more members than partitions; look for leaked consumers that are never closed.",
        area="join",
    ),
    row(
        KafkaError.FENCED_INSTANCE_ID,
        REFUSAL,
        APPLICATION,
        "Another process uses the same group.instance.id and has taken the membership.",
        "stop one of the two processes that use this group.instance.id.",
        INSTANCE_FIX,
        area="membership",
    ),
    row(
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        REFUSAL,
        APPLICATION,
        "The group reads the topic whose offsets are to be deleted.",
        "stop the members that subscribe to the topic, then delete the offsets.",
        "delete offsets only of topics that the group no longer reads.",
    ),
    row(
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        TRANSIENT,
        APPLICATION,
        "An open transaction holds offsets of the group, so that they cannot be read yet.",
        "nothing while the transaction ends; if it stays, end the open transaction (`kafka-transactions.sh "
        "--bootstrap-server BROKER find-hanging --broker-id ID`).",
        "commit or abort in every path of the producer's code, and set transaction.timeout.ms to what a transaction "
        "takes at most.",
        area="open transaction",
        is_retried=True,
    ),
    row(
        KafkaError.GROUP_DELETION_FAILED,
        REFUSAL,
        OPERATOR,
        "The coordinator could not delete the group.",
        "read the error message of the response (`wirelake explain`) and the coordinator's log.",
        "delete groups once they are empty.",
    ),
)
