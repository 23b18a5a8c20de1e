"""Silver: requests with their responses, and what each of them states."""

from __future__ import annotations

from dataclasses import replace

from pipeline.tables.bronze import DATE, FRAMES
from pipeline.tables.model import DERIVED_DAYS, Table, optional, required

_EXCHANGE_CONTEXT = (
    required("connection_id", "string", "The TCP connection"),
    required("agent_id", "string", "Name of the capture agent"),
    required("flow_id", "string", "The same connection seen by any agent"),
    required("protocol", "string", "kafka or mongodb"),
    required("client_ip", "string", "Address of the client"),
    required("client_port", "int", "Its TCP port"),
    required("server_ip", "string", "Address of the server"),
    required("server_port", "int", "Its TCP port"),
)

EXCHANGES = Table(
    "silver",
    "exchanges",
    "A request together with its response",
    (
        DATE,
        required("exchange_id", "string", "Id of the exchange"),
        *_EXCHANGE_CONTEXT,
        optional("api_key", "int", "Kafka api key or MongoDB opcode"),
        optional("api_name", "string", "Name of the api"),
        optional("api_version", "int", "Version of the request"),
        optional("correlation_id", "bigint", "Correlation id of the request (of the response if that is all we have)"),
        optional("client_id", "string", "client_id of the request"),
        required("ts", "timestamp", "request_ts, or response_ts when the request was not seen"),
        optional("request_ts", "timestamp", "First byte of the request"),
        optional("response_ts", "timestamp", "First byte of the response"),
        optional(
            "latency_us",
            "bigint",
            "Last byte of the request to first byte of the response, microseconds; null "
            "if one of the times is not known (flag 262144)",
        ),
        optional("request_size", "int", "Bytes of the request frame"),
        optional("response_size", "int", "Bytes of the response frame"),
        required(
            "status",
            "string",
            "paired, no_response_expected, unanswered, pending, orphan_response, or following_response: one that came "
            "by itself after another one (MongoDB's exhaust)",
        ),
        optional(
            "error_codes",
            "array<int>",
            "Distinct error codes, ascending: of Kafka the non-zero ones anywhere in the response, of MongoDB those of "
            "the command, of its writes and of its write concern",
        ),
        optional("error_names", "array<string>", "Their names, in the same order"),
        optional("request_status", "string", "decode_status of the request"),
        optional("response_status", "string", "decode_status of the response"),
        optional("request_flags", "int", "flags of the request's frame, as in bronze.frames"),
        optional("response_flags", "int", "flags of the response's frame"),
        optional(
            "service_us",
            "bigint",
            "latency_us without the time in which the server still answered earlier requests of this connection: from "
            "the last byte of the request, or of the response before it if that came later, to the first byte of the "
            "response, microseconds; null if that response was lost",
        ),
        optional(
            "request_seq",
            "bigint",
            "seq of the request's frame in bronze.frames: with connection_id, the day of request_ts and the direction "
            "the key of its row, which has the body",
        ),
        optional("response_seq", "bigint", "seq of the response's frame, likewise"),
        optional(
            "rules_read_bodies",
            "boolean",
            "Whether rules read a body of it, even if it is not slow; null in rows of earlier releases: not stated",
        ),
    ),
    key=("exchange_id",),
    partition_by=("date",),
    checks={
        "status_known": "status IN ('paired', 'no_response_expected', 'unanswered', 'pending', 'orphan_response', "
        "'following_response')",
        "latency_not_negative": "latency_us IS NULL OR latency_us >= 0",
    },
    keep_days=DERIVED_DAYS,
    cluster_by=("api_key", "client_id"),
)

BODIES = (
    optional("request_body", "string", "JSON of the request's body"),
    optional("response_body", "string", "JSON of the response's body"),
    optional("request_embedded", "string", "JSON array: the messages inside bytes fields of the request"),
    optional("response_embedded", "string", "JSON array: the messages inside bytes fields of the response"),
    optional("request_header", "string", "MongoDB: JSON of the request's header; null: all of it is in columns"),
    optional("response_header", "string", "MongoDB: JSON of the response's header"),
)
"""What the frames of an exchange hold; only ``bronze.frames`` stores it."""
BODY_NAMES = frozenset(column.name for column in BODIES)
"""Columns that exchanges have in lakes of layout 2."""

EXCHANGES_WITH_BODIES = replace(
    EXCHANGES,
    name="exchanges_with_bodies",
    comment="A request together with its response, and the bodies of both",
    columns=(*EXCHANGES.columns, *BODIES),
)
"""Exchanges while they are derived, and as the view ``exchanges_with_bodies`` gives them; no table of a lake."""

DUPLICATE_FLOWS = Table(
    "silver",
    "duplicate_flows",
    "A connection that carries the packets of another one, seen by another agent or behind address translation: in "
    "this hour the other's exchanges count in what is derived",
    (
        required("date", "date", "UTC day of hour"),
        required("hour", "timestamp", "Begin of the hour, UTC, by the ts of exchanges"),
        required("connection_id", "string", "The copy that does not count"),
        required("agent_id", "string", "The agent that saw it"),
        required("flow_id", "string", "Its flow_id; the copy of another agent has the same, unless translated"),
        required("counted_agent_id", "string", "The agent whose copy counts"),
        optional("counted_connection_id", "string", "The copy that counts"),
        optional("is_translated", "boolean", "Whether the copy that counts has other addresses or ports"),
        optional(
            "has_own_flow",
            "boolean",
            "Whether the copy that counts has another flow_id: other addresses, or an agent joined midway",
        ),
    ),
    key=("connection_id", "hour"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    former_name="copies",
)

PENDING_EXCHANGES = Table(
    "silver",
    "pending_exchanges",
    "Requests and responses that wait for their other half; rewritten by each batch",
    tuple(c for c in FRAMES.columns if c.name not in {"frame", "record_batches"}),
    key=("exchange_id", "direction"),
    former_name="open_exchanges",
)

OFFSET_EVENTS = Table(
    "silver",
    "offset_events",
    "What one exchange states of one partition",
    (
        DATE,
        required("exchange_id", "string", "The exchange that states it"),
        required(
            "ts", "timestamp", "When it was stated: the response's first byte, or the request's if there is no response"
        ),
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("server", "string", "ip:port of the broker that answered"),
        required("client", "string", "ip:port of the client"),
        optional("topic", "string", "Topic name; null while only the id is known"),
        optional("topic_id", "string", "Topic id (KIP-516), where the exchange carries one"),
        required("partition", "int", "Partition index"),
        required(
            "kind",
            "string",
            "produced, produce_rejected, fetched, fetch_rejected, committed, commit_rejected, "
            "fetched_commit, listed, txn_committed, txn_commit_rejected or fetch_forgotten (taken out of the session)",
        ),
        required("ordinal", "int", "Position among the events of the same exchange, partition and kind"),
        optional("offset", "bigint", "produced: first offset; fetched: fetch offset; commits: next offset to read"),
        optional("next_offset", "bigint", "produced, fetched: one past the last record seen"),
        optional("records", "bigint", "Records in the batches seen"),
        optional("high_watermark", "bigint", "As the response states"),
        optional("last_stable_offset", "bigint", "As the response states"),
        optional("log_start_offset", "bigint", "As the response states"),
        optional("leader_epoch", "int", "As the exchange states"),
        optional("group_id", "string", "Consumer group"),
        optional("member_id", "string", "Member of the group"),
        optional("generation", "int", "Generation (or member epoch) of the commit"),
        optional("client_id", "string", "client_id of the request"),
        optional("isolation_level", "string", "read_uncommitted or read_committed (fetched, listed)"),
        optional("error_code", "int", "Kafka error code of this partition; 0 is none"),
        optional("error_name", "string", "Its name"),
        optional("producer_id", "bigint", "Producer of the (last) batch or transaction"),
        optional("producer_epoch", "int", "Its epoch"),
        optional("transactional_id", "string", "Its transactional id, if the exchange states it"),
        optional("list_timestamp", "bigint", "listed: the timestamp asked for; -1 latest, -2 earliest"),
        optional("metadata", "string", "commits: the metadata string"),
        optional("session_id", "int", "fetches: the fetch session (KIP-227); null outside of one"),
        optional("session_epoch", "int", "fetches: epoch in that session; 0 begins it with its full set of partitions"),
    ),
    key=("exchange_id", "topic", "topic_id", "partition", "kind", "ordinal"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("topic", "partition", "group_id"),
)

RECORD_BATCHES = Table(
    "silver",
    "record_batches",
    "A record batch seen in a Produce request or a Fetch response",
    (
        DATE,
        required("exchange_id", "string", "The exchange that carried it"),
        required("ts", "timestamp", "When it was seen"),
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("server", "string", "ip:port of the broker"),
        optional("client_id", "string", "client_id of the request"),
        optional("topic", "string", "Topic name; null while only the id is known"),
        optional("topic_id", "string", "Topic id"),
        required("partition", "int", "Partition index"),
        required("source", "string", "produce or fetch"),
        required("ordinal", "int", "Position in the records field of this partition"),
        optional("base_offset", "bigint", "First offset; of Produce as the response states it, null if it does not"),
        optional("last_offset", "bigint", "Last offset, inclusive"),
        optional("records", "int", "Number of records; null if a compressed v0/v1 message cannot be opened"),
        optional("size", "int", "Bytes of the batch with its header"),
        optional("magic", "int", "Message format: 0, 1 or 2"),
        optional("compression", "string", "none, gzip, snappy, lz4 or zstd"),
        optional("timestamp_type", "string", "CreateTime or LogAppendTime"),
        optional("base_timestamp", "bigint", "ms since the epoch"),
        optional("max_timestamp", "bigint", "ms since the epoch"),
        optional("producer_id", "bigint", "-1: none"),
        optional("producer_epoch", "int", "-1: none"),
        optional("base_sequence", "int", "-1: none"),
        optional("is_transactional", "boolean", "Part of a transaction"),
        optional("is_control", "boolean", "A control batch (transaction marker …)"),
        optional("control_type", "string", "ABORT, COMMIT, LEADER_CHANGE …"),
        optional("crc_valid", "boolean", "Checksum verdict; null where it could not be checked"),
    ),
    key=("exchange_id", "topic", "topic_id", "partition", "source", "ordinal"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("topic", "partition"),
)

STATE_EVENTS = Table(
    "silver",
    "state_events",
    "What one exchange states of groups, transactions, fetch sessions and client software",
    (
        DATE,
        required("exchange_id", "string", "The exchange that states it"),
        required("connection_id", "string", "Its TCP connection"),
        required(
            "ts", "timestamp", "When it was stated: the response's first byte, or the request's if there is no response"
        ),
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("server", "string", "ip:port of the broker that answered"),
        required("client", "string", "ip:port of the client"),
        optional("client_id", "string", "client_id of the request"),
        required(
            "kind",
            "string",
            "join, assignment, heartbeat, leave, topology (of a Streams group: which subtopology reads which topic) or "
            "group (another request in a group's name); txn_init, "
            "txn_add_partition, txn_add_group, txn_end or txn_marker; fetch_session; software",
        ),
        required("ordinal", "int", "Position among the statements of the same exchange"),
        optional("group_id", "string", "Consumer group"),
        optional("member_id", "string", "Member of the group that this is about"),
        optional(
            "generation", "int", "Generation of the group or, in the consumer protocol (KIP-848), epoch of the member"
        ),
        optional("group_protocol", "string", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        optional(
            "topic", "string", "Topic name; null while only the id is known, in an assignment of nothing or a task"
        ),
        optional("topic_id", "string", "Topic id, where the exchange carries one"),
        optional("partition", "int", "txn_add_partition, txn_marker: partition index"),
        optional("transactional_id", "string", "Transactional id"),
        optional("producer_id", "bigint", "Its producer id"),
        optional("producer_epoch", "int", "Its epoch; after KIP-890 each transaction has one of its own"),
        optional("committed", "boolean", "txn_end, txn_marker: true commits, false aborts"),
        optional("session_id", "int", "fetch_session: id of the session (KIP-227)"),
        optional("session_epoch", "int", "fetch_session: 0 begins the session, -1 ends it, else one more than before"),
        optional("software_name", "string", "software: the client library as it names itself (KIP-511)"),
        optional("software_version", "string", "software: its version"),
        optional("error_code", "int", "Kafka error code of the answer; 0 is none, null: no answer"),
        optional("error_name", "string", "Its name"),
        optional("subtopology", "string", "topology, assignment: which part of a Streams application (KIP-1071)"),
        optional(
            "partitions",
            "array<int>",
            "assignment: partitions of the topic that the member was given; null: none",
        ),
    ),
    key=("exchange_id", "ordinal"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("kind", "group_id"),
)
