"""Codes about logins, rights, tokens and credentials."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.codes.kafka.rows import row
from pipeline.analysis.codes.model import (
    APPLICATION,
    CONFIGURATION,
    HEALTH,
    NO_ONE,
    OPERATOR,
    REFUSAL,
    CodeFacts,
)

_ACLS: Final = "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME"
_RIGHT_FIX: Final = (
    "keep the ACLs with the service's deployment; check sasl.jaas.config (librdkafka: sasl.username) for the right "
    "principal."
)
_LOGIN: Final = (
    "check the client's credentials. If you do not recognize the client, someone may be guessing passwords: "
    "check its address."
)
_LOGIN_FIX: Final = (
    "correct sasl.jaas.config (librdkafka: sasl.username, sasl.password); rotate secrets with a period "
    "in which both the old and the new one are valid."
)


def _right(
    error: KafkaError, resource: str, operation: str, options: str, apis: tuple[ApiKey | None, ...] = (None,)
) -> tuple[CodeFacts, ...]:
    """What is missing is a right of one operation on one kind of resource."""
    meaning = f"The client's principal may not {operation} {resource}."
    now = (
        f"if this client may do it, grant its principal the right: `{_ACLS} {options}`; if not, stop it. The "
        "broker's authorizer log names the principal."
    )
    return tuple(row(error, REFUSAL, OPERATOR, meaning, now, _RIGHT_FIX, area="right", api=api) for api in apis)


_TOPIC, _GROUP = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED
_CLUSTER, _TRANSACTION = KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

ROWS: Final = (
    *_right(
        _TOPIC,
        "the topic (it needs Read to consume, Write to produce)",
        "use",
        "--operation Read --topic {topic}",
    ),
    *_right(
        _TOPIC,
        "the topic",
        "read",
        "--operation Read --topic {topic}",
        (
            ApiKey.FETCH,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.DESCRIBE_PRODUCERS,
        ),
    ),
    *_right(
        _TOPIC,
        "to the topic",
        "write",
        "--operation Write --topic {topic}",
        (ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN),
    ),
    *_right(_TOPIC, "the topic", "create", "--operation Create --topic {topic}", (ApiKey.CREATE_TOPICS,)),
    *_right(
        _TOPIC,
        "the topic or its records",
        "delete",
        "--operation Delete --topic {topic}",
        (ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS),
    ),
    *_right(_TOPIC, "the topic", "alter", "--operation Alter --topic {topic}", (ApiKey.CREATE_PARTITIONS,)),
    *_right(
        _TOPIC,
        "of the topic",
        "see the settings",
        "--operation DescribeConfigs --topic {topic}",
        (ApiKey.DESCRIBE_CONFIGS,),
    ),
    *_right(
        _TOPIC,
        "of the topic",
        "change the settings",
        "--operation AlterConfigs --topic {topic}",
        (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS),
    ),
    *_right(_GROUP, "the group", "use", "--operation Read --group {group}"),
    *_right(
        _GROUP,
        "the group or its offsets",
        "delete",
        "--operation Delete --group {group}",
        (ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE),
    ),
    *_right(
        _GROUP,
        "the group",
        "describe",
        "--operation Describe --group {group}",
        (
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.STREAMS_GROUP_DESCRIBE,
        ),
    ),
    *_right(_CLUSTER, "the cluster in this way", "administer", "--operation OPERATION --cluster"),
    *_right(
        _CLUSTER,
        "with idempotence (brokers before 2.8 ask for a right on the cluster)",
        "write",
        "--operation IdempotentWrite --cluster",
        (ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE),
    ),
    *_right(_CLUSTER, "topics", "create", "--operation Create --cluster", (ApiKey.CREATE_TOPICS,)),
    *_right(
        _CLUSTER,
        "the cluster",
        "alter",
        "--operation Alter --cluster",
        (
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.UPDATE_FEATURES,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.UNREGISTER_BROKER,
        ),
    ),
    *_right(
        _CLUSTER,
        "the cluster",
        "describe",
        "--operation Describe --cluster",
        (
            ApiKey.DESCRIBE_ACLS,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.DESCRIBE_CLUSTER,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_QUORUM,
        ),
    ),
    *_right(
        _TRANSACTION,
        "the transactional id",
        "use",
        "--operation Write --transactional-id {transactional_id}",
    ),
    *_right(
        KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "the delegation token",
        "see",
        "--operation Describe --delegation-token TOKEN",
    ),
    row(
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        CONFIGURATION,
        APPLICATION,
        "The listener does not offer the SASL mechanism that the client asks for.",
        "set sasl.mechanism of the client to one that the answer lists, or connect to the listener that offers it.",
        "set sasl.mechanism (librdkafka: sasl.mechanisms) to one of sasl.enabled.mechanisms of the brokers.",
        area="login",
    ),
    row(
        KafkaError.ILLEGAL_SASL_STATE,
        CONFIGURATION,
        APPLICATION,
        "The request does not fit the state of the login: it came before, within or instead of it.",
        "compare security.protocol of the client with the listener: one with SASL takes nothing before the login, and "
        "one without SASL takes no login.",
        "set security.protocol alike in the client and the broker's listener; update the client library.",
        area="login",
    ),
    row(
        KafkaError.SASL_AUTHENTICATION_FAILED,
        REFUSAL,
        APPLICATION,
        "The broker refused the login: user, password, token or ticket is wrong or has expired.",
        _LOGIN,
        _LOGIN_FIX,
        area="login",
    ),
    row(
        KafkaError.SECURITY_DISABLED,
        CONFIGURATION,
        OPERATOR,
        "The broker has no authorizer, so that it keeps no ACLs; no login and no right was refused.",
        "skip ACLs on this cluster, or configure an authorizer.",
        "set authorizer.class.name (KRaft: org.apache.kafka.metadata.authorizer.StandardAuthorizer) on every broker "
        "and controller, if ACLs are wanted.",
        area="authorizer",
    ),
    row(
        KafkaError.SECURITY_DISABLED,
        HEALTH,
        NO_ONE,
        "The broker has no authorizer, so that there are no ACLs to list: MirrorMaker asks at each start whether there "
        "are, and continues without.",
        fix="set sync.topic.acls.enabled=false, if MirrorMaker asks.",
        area="authorizer",
        api=ApiKey.DESCRIBE_ACLS,
    ),
    row(
        KafkaError.DELEGATION_TOKEN_AUTH_DISABLED,
        CONFIGURATION,
        OPERATOR,
        "The brokers do not issue delegation tokens.",
        "log in by another mechanism.",
        "set delegation.token.secret.key, alike on all brokers.",
    ),
    row(
        KafkaError.DELEGATION_TOKEN_NOT_FOUND,
        REFUSAL,
        APPLICATION,
        "The brokers have no such delegation token: it expired and was removed, or is of another cluster.",
        "create a new token: `kafka-delegation-tokens.sh --bootstrap-server BROKER --create "
        "--max-life-time-period -1`.",
        "renew tokens before they expire.",
    ),
    row(
        KafkaError.DELEGATION_TOKEN_OWNER_MISMATCH,
        REFUSAL,
        APPLICATION,
        "Only the token's owner and its renewers may renew or expire it.",
        "run it as the owner of the token.",
        "list the renewer when the token is created (--renewer-principal).",
    ),
    row(
        KafkaError.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        REFUSAL,
        APPLICATION,
        "Tokens are issued over authenticated connections only, and not to a client that logged in by a token.",
        "ask over a SASL or two-way TLS connection, with the credentials of a user.",
        "use security.protocol=SASL_SSL, and another mechanism than a token, for what creates tokens.",
    ),
    row(
        KafkaError.DELEGATION_TOKEN_EXPIRED,
        REFUSAL,
        APPLICATION,
        "The delegation token has expired.",
        "create a new token and give it to the client.",
        "renew tokens in time; delegation.token.max.lifetime.ms of the brokers bounds it.",
    ),
    row(
        KafkaError.INVALID_PRINCIPAL_TYPE,
        REFUSAL,
        APPLICATION,
        "The principal has another type than User.",
        "name the principal as User:NAME.",
        "principals of ACLs and tokens begin with User:.",
    ),
    row(
        KafkaError.UNACCEPTABLE_CREDENTIAL,
        REFUSAL,
        APPLICATION,
        "The credential does not meet the requirements, such as the number of SCRAM iterations.",
        "use 4096 to 16384 iterations and a name that is not empty.",
        "read the error message of the response (`wirelake explain`).",
    ),
    row(
        KafkaError.PRINCIPAL_DESERIALIZATION_FAILURE,
        CONFIGURATION,
        OPERATOR,
        "The controller could not read the principal that a broker forwards.",
        "compare principal.builder.class of brokers and controllers.",
        "use one principal.builder.class, which can be serialised, on all nodes.",
    ),
)
