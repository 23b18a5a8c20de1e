"""Error codes of the consumer (KIP-848), share (KIP-932) and streams (KIP-1071) group protocols."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import KafkaError
from pipeline.analysis.codes.kafka.groups import INSTANCE_FIX, POLL_FIX
from pipeline.analysis.codes.kafka.rows import row
from pipeline.analysis.codes.model import APPLICATION, CLIENT, CONFIGURATION, OPERATOR, REFUSAL, TRANSIENT

ROWS: Final = (
    row(
        KafkaError.FENCED_MEMBER_EPOCH,
        TRANSIENT,
        CLIENT,
        "The coordinator has put the member out: its epoch is not the group's; the member gives up its partitions and "
        "joins again.",
        "nothing if the member joins again.",
        POLL_FIX,
        area="membership",
    ),
    row(
        KafkaError.STALE_MEMBER_EPOCH,
        TRANSIENT,
        CLIENT,
        "The member's epoch is older than the coordinator's; the next heartbeat gives it the new one.",
        "nothing: the client repeats the request after its next heartbeat.",
        POLL_FIX,
        area="membership",
    ),
    row(
        KafkaError.UNRELEASED_INSTANCE_ID,
        REFUSAL,
        APPLICATION,
        "Another member that still lives uses this group.instance.id.",
        "stop the other process that uses this group.instance.id, or wait for its session to end.",
        INSTANCE_FIX,
        area="join",
    ),
    row(
        KafkaError.UNSUPPORTED_ASSIGNOR,
        CONFIGURATION,
        APPLICATION,
        "The brokers do not have the assignor that the member asks for.",
        "restart the client without group.remote.assignor.",
        "name one of group.consumer.assignors of the brokers (uniform, range).",
        area="join",
    ),
    row(
        KafkaError.INVALID_REGULAR_EXPRESSION,
        CONFIGURATION,
        APPLICATION,
        "The broker cannot read the pattern of the subscription.",
        "restart the client with a pattern that RE2J reads.",
        "in the consumer protocol (KIP-848) the broker evaluates the subscription's pattern, and it knows no "
        "look-around.",
        area="join",
    ),
    row(
        KafkaError.STREAMS_INVALID_TOPOLOGY,
        REFUSAL,
        APPLICATION,
        "The topology that the application sends is not valid.",
        "go back to the version of the application that ran, and read the error message of the response (`wirelake "
        "explain`).",
        "the topology that it sends has topics that do not fit together.",
        area="join",
    ),
    row(
        KafkaError.STREAMS_INVALID_TOPOLOGY_EPOCH,
        REFUSAL,
        APPLICATION,
        "The number of the topology does not follow the group's.",
        "stop the instances of the older version of the application.",
        "deploy all instances of an application.id with one topology.",
    ),
    row(
        KafkaError.STREAMS_TOPOLOGY_FENCED,
        REFUSAL,
        APPLICATION,
        "The instance runs an older topology than the group.",
        "stop the instances that still run the old version of the application.",
        "deploy all instances of an application.id with one topology.",
        area="join",
    ),
    row(
        KafkaError.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
        TRANSIENT,
        OPERATOR,
        "The broker could not store the description of the topology; the application itself works.",
        "read the log of the coordinator.",
        "look at the broker's plugin that stores descriptions.",
    ),
)
