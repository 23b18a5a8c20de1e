"""Groups of Kafka's apis that rules, and what prepares their input, go by."""

from __future__ import annotations

from typing import Final

from decoder.kafka.apis import ApiKey
from pipeline.analysis.tables import numbers

SLOW_BY_DESIGN = numbers(
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.INIT_PRODUCER_ID,
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.DELETE_RECORDS, ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS,
    ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.UPDATE_FEATURES, ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.STREAMS_GROUP_HEARTBEAT,
)  # fmt: skip
"""These take long by design, or because of others: members, transactions, replicas, controllers.

OffsetForLeaderEpoch is asked by clients while a leader changes. Fetch and ShareFetch wait for as long as they say.
"""
SHARE_APIS: Final = numbers(
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.WRITE_SHARE_GROUP_STATE
)
"""Requests about share groups (KIP-932)."""
NAMING_THINGS = (
    ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN, ApiKey.OFFSET_FETCH, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP,
)  # fmt: skip
"""Requests that differ by the group or transactional id that they name: one client asks for several."""
NAMING_INSTANCES = (
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT,
)  # fmt: skip
"""Requests that name the instance id of their sender."""
