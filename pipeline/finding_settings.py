"""How much of a symptom makes a finding: the thresholds of all rules, with their defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class FindingSettings(BaseModel):
    """How much of a symptom makes a finding. Offsets and growth are records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stuck_commit_repeats: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Commits of the same old offset, between which another committer went beyond it"
    )
    stuck_commit_repeats_while_fetching: Annotated[int, Field(ge=2)] = Field(
        default=6,
        description="The same, where only the fetch position went beyond it: more, because an application that commits "
        "what its slowest worker has finished does this for a while in good health",
    )
    competing_returns: Count = Field(
        default=2, description="Times that one committer comes back after another took over, without a rebalance"
    )
    lso_stalled_records: Count = Field(
        default=10, description="Growth of the high watermark while the last stable offset stands still"
    )
    lso_stalled_seconds: Seconds = Field(default=5.0, description="How long it stands still")
    lso_stalled_ratio: Annotated[float, Field(ge=1)] = Field(
        default=3.0, description="Times as long as transactions on that partition usually are open, where that is known"
    )
    transaction_seconds: Seconds = Field(
        default=60.0,
        description="How long a transaction may be open where too few were seen to know how long they usually are "
        "(transaction.timeout.ms)",
    )
    starved_fetches: Count = Field(
        default=3, description="Fetches of a read_committed consumer that stands there meanwhile"
    )
    behind_records: Count = Field(
        default=10,
        description="Records that must wait for stopped, stalled, rewound and partition_dropped_from_commits",
    )
    lag_growing_records: Count = Field(
        default=50, description="Growth of the least lag from the first to the last third of a while"
    )
    lag_growing_work_seconds: Seconds = Field(
        default=2.0, description="The growth is also at least what the group processes in so many seconds"
    )
    lag_growing_seconds: Seconds = Field(
        default=15.0, description="The shortest while in which lag is compared; longer for who commits seldom"
    )
    silence_periods: Annotated[float, Field(ge=1)] = Field(
        default=3.0,
        description="Times as long as the group, partition or member itself usually takes; each span in seconds is the "
        "least of it",
    )
    stopped_seconds: Seconds = Field(
        default=10.0, description="Silence of a group, or of a member of it, while records wait"
    )
    stalled_commits: Annotated[int, Field(ge=2)] = Field(
        default=5, description="Commits of one and the same offset, or fetches from it"
    )
    stalled_seconds: Seconds = Field(default=8.0, description="For how long")
    fetched_again_seconds: Seconds = Field(
        default=30.0,
        description="How long a group fetches from one offset again and again before it is stalled; twice as long "
        "where it is not known how long it usually stays at one",
    )
    poll_seconds: Seconds = Field(
        default=300.0,
        description="How long a client may process what one poll gave (max.poll.interval.ms), where it is not known "
        "how long it usually takes",
    )
    uncommitted_seconds: Annotated[float, Field(ge=60, allow_inf_nan=False)] = Field(
        default=300.0,
        description="How long a group reads on without any commit that is known, until that is stopped, for "
        "information; after four times as long it is a warning",
    )
    dropped_commits: Count = Field(
        default=5, description="Commits of other partitions of the topic by the same member without this one"
    )
    dropped_seconds: Seconds = Field(default=6.0, description="For how long")
    episode_pause_seconds: Seconds = Field(
        default=300.0, description="What comes again after a longer pause is counted anew"
    )
    resolved_after_seconds: Seconds = Field(
        default=60.0, description="What was not seen for so long before the end of the data is resolved"
    )
    commit_rejected_times: Count = Field(default=2, description="Refused commits of one client and group")
    commit_rejected_times_rebalancing: Count = Field(
        default=4, description="The same, where all were refused because of a rebalance: some are normal"
    )
    commit_repair_seconds: Seconds = Field(
        default=10.0,
        description="A refused commit is made good if its member, or the partition's owner, has one accepted within so "
        "long; at least three of its own periods",
    )
    zombie_times: Count = Field(default=3, description="Requests of a member that is none any more")
    zombie_seconds: Seconds = Field(default=1.0, description="For how long")
    storm_generations: Annotated[int, Field(ge=2)] = Field(default=5, description="Generations of a group")
    storm_interval_seconds: Seconds = Field(
        default=60.0, description="At most so long from one to the next, on average"
    )
    storm_unexplained: Count = Field(
        default=3,
        description="Generations among them that no deploy explains: instances come again and again, or nobody came or "
        "went",
    )
    storm_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="Or the share of time in which the group stands still for rebalances"
    )
    reset_records: Count = Field(
        default=1, description="Records that a group skips or reads again when its position is reset"
    )
    poison_restarts: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Lives of members that begin at the same offset of a partition and end without a commit"
    )
    poison_seconds: Seconds = Field(
        default=10.0, description="For how long; at least twice what usually lies between two commits of the group"
    )
    poll_exceeded_times: Count = Field(
        default=1, description="Times that a client leaves its group in the middle of its work"
    )
    slow_rebalance_seconds: Seconds = Field(
        default=10.0, description="How long a group waits for one member before it has an assignment again"
    )
    slow_rebalance_ratio: Annotated[float, Field(ge=1)] = Field(
        default=3.0, description="Times as long as rebalances of this group usually take, where that is known"
    )
    join_refused_times: Count = Field(default=3, description="Refused joins of one client and group, and none accepted")
    join_refused_seconds: Seconds = Field(
        default=5.0, description="For how long; where a place may become free, at least the member's session timeout"
    )
    produce_refused_times: Count = Field(
        default=1, description="Refused batches of one client and topic that no later attempt carries"
    )
    produce_refused_retries: Count = Field(default=3, description="Refusals, where later attempts carry all of it")
    produce_refused_seconds: Seconds = Field(default=5.0, description="For how long, before an attempt is accepted")
    sequence_gap_times: Count = Field(default=1, description="Batches refused because of their sequence number")
    unknown_topic_times: Count = Field(default=5, description="Requests for a topic that is not there")
    stale_metadata_times: Count = Field(
        default=3, description="Requests refused because of the leader or its epoch, of one client and partition"
    )
    stale_metadata_seconds: Seconds = Field(
        default=1.0, description="For how long they do not agree on the leader: when it changes, requests are under way"
    )
    retry_without_success_seconds: Seconds = Field(
        default=30.0,
        description="How long a client asks in vain, for a topic or of a broker that does not lead, until it is a "
        "warning: until then topics are made and metadata spread",
    )
    refused_again_times: Count = Field(
        default=3, description="Refusals without a success between them that make a refused client more than a probe"
    )
    refused_briefly_seconds: Seconds = Field(
        default=10.0,
        description="How long requests are refused with an error that passes by itself, such as a timeout, before "
        "it is a finding",
    )
    churn_sessions: Count = Field(default=10, description="Fetch sessions that one client opens")
    churn_share: Annotated[float, Field(gt=0, le=1)] = Field(default=0.5, description="Their share of its fetches")
    costly_sessions: Count = Field(default=300, description="So many of them within a while are a warning")
    costly_sessions_seconds: Seconds = Field(default=600.0, description="How long that while is")
    slow_seconds: Seconds = Field(default=1.0, description="Latency of an answer that does not wait by design")
    slow_answers: Count = Field(default=3, description="Slow answers of one broker; above info at so many moments")
    slow_ratio: Annotated[float, Field(ge=1)] = Field(
        default=20.0, description="Times the usual 95th percentile that the slowest must take"
    )
    slow_samples: Count = Field(
        default=20, description="Answers of an api and broker from which its usual latency follows"
    )
    throttled_times: Count = Field(default=3, description="Answers with a throttle time, of one client")
    throttled_seconds: Seconds = Field(default=1.0, description="Their sum")
    auth_failed_times: Count = Field(default=1, description="Refused logins or operations")
    unsupported_version_times: Count = Field(default=1, description="Requests in a version that the broker refuses")
    acks0_requests: Count = Field(default=1, description="Produce requests that ask for no answer")
    unanswered_times: Count = Field(default=3, description="Requests of one client that a broker left unanswered")
    tiny_batches: Count = Field(default=300, description="Batches of one client and partition within ten seconds")
    tiny_records: Annotated[float, Field(ge=1)] = Field(default=1.5, description="At most so many records in each")
    mongo_slow_seconds: Seconds = Field(
        default=0.5, description="Latency of a MongoDB command that does not wait by design"
    )
    mongo_slow_commands: Count = Field(default=3, description="Slow ones of one command and namespace")
    mongo_slow_ratio: Annotated[float, Field(ge=1)] = Field(
        default=5.0,
        description="Times the usual of the same application and command that each must take: the 95th percentile at "
        "other times, or the 75th of all where too few commands were seen outside the slow times",
    )
    mongo_slow_samples: Count = Field(
        default=5, description="Commands of an application from which its usual latency follows; else those of all"
    )
    mongo_failures: Count = Field(default=3, description="Failures of one command and namespace")
    mongo_failure_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.1,
        description="Share of what an application sent meanwhile that must fail, or be repeated, for a warning",
    )
    mongo_failure_run: Count = Field(
        default=10, description="Or so many failures or repeats of an application without a success between them"
    )
    mongo_retries: Count = Field(default=5, description="Writes of one command and namespace that were repeated")
    mongo_retry_interval_seconds: Seconds = Field(
        default=10.0, description="At most so long from one to the next, on average"
    )
    mongo_open_cursors: Count = Field(default=10, description="Cursors that one application leaves open")
    mongo_cursor_idle_seconds: Seconds = Field(default=30.0, description="Without a use of them for so long")
    unavailable_refusals: Count = Field(
        default=5, description="Refusals of a partition or coordinator without a success between"
    )
    unavailable_seconds: Seconds = Field(
        default=10.0,
        description="For how long; at least three times the usual time between two successes, where that is known",
    )
    share_deliveries: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Deliveries of one record to members of a share group (KIP-932)"
    )
    duplicate_write_seconds: Seconds = Field(
        default=0.5, description="From a batch without an answer to the same batch on another connection, at least"
    )
    hanging_seconds: Seconds = Field(
        default=30.0, description="How long a transaction is open, and nothing was seen of it, at least"
    )
    hanging_ratio: Annotated[float, Field(ge=1)] = Field(
        default=5.0, description="Times as long as the longest that its client, or others there, took to commit"
    )
    churn_connections: Annotated[int, Field(ge=2)] = Field(
        default=30, description="Connections that one client opens within a minute"
    )
    churn_requests: Annotated[float, Field(ge=0)] = Field(
        default=3.0, description="At most so many requests beside the handshake on each (median)"
    )
    churn_closed: Count = Field(
        default=3, description="Connections that a client closes, one after the other, while their answer is coming"
    )
    connection_failures: Count = Field(
        default=3, description="Connections that fail in one way at one server, or of one client there"
    )
    connection_restart_seconds: Seconds = Field(
        default=60, description="So long a server that answered before may refuse connections: it restarts"
    )
    connection_pause_seconds: Seconds = Field(
        default=30, description="Silence of a connection after which something between may have forgotten it"
    )
    connection_stall_seconds: Seconds = Field(
        default=10, description="So long a side of a connection asks to be sent nothing, as it does not read"
    )
    churn_checks: Annotated[int, Field(ge=3)] = Field(
        default=5, description="Connections in a steady rhythm without any work that are a health check"
    )
    stream_losses: Count = Field(
        default=1, description="Errors after which a change stream of one application cannot go on"
    )
    lookback: Annotated[timedelta, Field(ge=timedelta(hours=1))] = Field(
        default=timedelta(days=1), description="How far before the hour of the first news rules look, at least an hour"
    )
    max_evidence: Count = Field(default=20, description="Exchange ids kept with a finding")
