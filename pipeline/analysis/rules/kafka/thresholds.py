"""Thresholds that several rules go by."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

LSO_STALLED_RECORDS: Final[Any] = Field(
    default=10, description="Growth of the high watermark while the last stable offset stands still"
)
LSO_STALLED_SECONDS: Final[Any] = Field(default=5.0, description="How long it stands still")
BEHIND_RECORDS: Final[Any] = Field(
    default=10,
    description="Records that must wait for stopped, stalled, rewound and partition_dropped_from_commits",
)
FETCHED_AGAIN_SECONDS: Final[Any] = Field(
    default=30.0,
    description="How long a group fetches from one offset again and again before it is stalled; twice as long "
    "where it is not known how long it usually stays at one",
)
POLL_SECONDS: Final[Any] = Field(
    default=300.0,
    description="How long a client may process what one poll gave (max.poll.interval.ms), where it is not known "
    "how long it usually takes",
)
UNCOMMITTED_SECONDS: Final[Any] = Field(
    default=300.0,
    description="How long a group reads on without any commit that is known, until that is stopped, for "
    "information; after four times as long it is a warning",
)
DROPPED_COMMITS: Final[Any] = Field(
    default=5, description="Commits of other partitions of the topic by the same member without this one"
)
ZOMBIE_TIMES: Final[Any] = Field(default=3, description="Requests of a member that is none any more")
RESET_RECORDS: Final[Any] = Field(
    default=1, description="Records that a group skips or reads again when its position is reset"
)
JOIN_REFUSED_SECONDS: Final[Any] = Field(
    default=5.0, description="For how long; where a place may become free, at least the member's session timeout"
)
STALE_METADATA_TIMES: Final[Any] = Field(
    default=3, description="Requests refused because of the leader or its epoch, of one client and partition"
)
STALE_METADATA_SECONDS: Final[Any] = Field(
    default=1.0, description="For how long they do not agree on the leader: when it changes, requests are under way"
)
RETRY_WITHOUT_SUCCESS_SECONDS: Final[Any] = Field(
    default=30.0,
    description="How long a client asks without success, for a topic or of a broker that does not lead, until it is a "
    "warning: until then topics are made and metadata spread",
)
REFUSED_AGAIN_TIMES: Final[Any] = Field(
    default=3, description="Refusals without a success between them that make a refused client more than a probe"
)
SLOW_SECONDS: Final[Any] = Field(default=1.0, description="Latency of an answer that does not wait by design")
UNAVAILABLE_REFUSALS: Final[Any] = Field(
    default=5, description="Refusals of a partition or coordinator without a success between"
)
UNAVAILABLE_SECONDS: Final[Any] = Field(
    default=10.0,
    description="For how long; at least three times the usual time between two successes, where that is known",
)
