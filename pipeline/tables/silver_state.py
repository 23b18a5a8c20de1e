"""Silver: what follows from many exchanges together, and commands of MongoDB."""

from __future__ import annotations

from pipeline.tables.bronze import DATE
from pipeline.tables.model import DERIVED_DAYS, Table, optional, required

ASSIGNMENTS = Table(
    "silver",
    "assignments",
    "Who was given which partition in which generation of a group; the view partition_owners shows until when",
    (
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("group_id", "string", "Consumer group"),
        required("generation", "int", "Generation of the group or, in the consumer protocol, epoch of the member"),
        required("member_id", "string", "Member of the group"),
        optional(
            "topic", "string", "Topic name; null while only the id is known, and where the member was given nothing"
        ),
        optional("partition", "int", "Partition index; null: the member was given nothing"),
        optional("topic_id", "string", "Topic id, where the assignment names it by that (KIP-848)"),
        required(
            "group_protocol",
            "string",
            "classic (JoinGroup, SyncGroup), consumer (KIP-848), share (KIP-932: several members own a partition) or "
            "streams (KIP-1071: active tasks)",
        ),
        required("server", "string", "ip:port of the coordinator that stated it first"),
        optional("client_id", "string", "client_id of the member; null while only the group's leader has stated it"),
        required("first_ts", "timestamp", "First stated"),
        required("last_ts", "timestamp", "Last stated"),
        required("exchange_id", "string", "The exchange that stated it first"),
        optional("subtopology", "string", "Of a task of a Streams group: its subtopology"),
    ),
    key=("cluster", "group_id", "generation", "member_id", "topic", "topic_id", "partition", "subtopology"),
    checks={"times_in_order": "last_ts >= first_ts"},
    keep_days=DERIVED_DAYS,
    aged_by="last_ts",
)

TRANSACTIONS = Table(
    "silver",
    "transactions",
    "A transaction of a producer, from its first request to its end (KIP-98, KIP-890)",
    (
        required("date", "date", "UTC day of first_ts"),
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("transactional_id", "string", "Transactional id"),
        required("producer_id", "bigint", "Producer id"),
        required("producer_epoch", "int", "Epoch of the producer in this transaction"),
        required("first_exchange_id", "string", "The exchange that began it"),
        optional("client_id", "string", "client_id of the producer"),
        optional("client", "string", "ip:port of the producer"),
        required(
            "state",
            "string",
            "ongoing; committing, aborting: its end was accepted; committed, aborted: its markers were seen on every "
            "partition, or the producer could continue; unknown: frames were lost before its end was seen",
        ),
        required("partitions", "array<string>", "topic-partition of all that it writes to, in order of name"),
        required("marked_partitions", "array<string>", "Those of them whose marker was seen"),
        required("groups", "array<string>", "Consumer groups whose offsets it commits"),
        required("records", "bigint", "Records produced in it, as far as seen"),
        required("first_ts", "timestamp", "Its first request"),
        optional("end_ts", "timestamp", "When its end was accepted, or else its first marker seen; null while open"),
        required("last_ts", "timestamp", "Last seen: a request or marker"),
        optional("duration_us", "bigint", "first_ts to end_ts, microseconds; null while open"),
        optional("end_exchange_id", "string", "The exchange that ended it"),
        required(
            "complete", "boolean", "Whether its beginning was seen and no frames of its connections were lost meanwhile"
        ),
    ),
    key=("cluster", "transactional_id", "producer_id", "producer_epoch", "first_exchange_id"),
    partition_by=("date",),
    checks={
        "state_known": "state IN ('ongoing', 'committing', 'committed', 'aborting', 'aborted', 'unknown')",
        "duration_not_negative": "duration_us IS NULL OR duration_us >= 0",
    },
    keep_days=DERIVED_DAYS,
    cluster_by=("transactional_id",),
)

FETCH_SESSIONS = Table(
    "silver",
    "fetch_sessions",
    "A partition in a fetch session (KIP-227) on one day, also where incremental fetches do not speak of it",
    (
        required("date", "date", "UTC day of the fetches"),
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("server", "string", "ip:port of the broker that keeps the session"),
        required("session_id", "int", "Id of the session on that broker"),
        required("client", "string", "ip:port of the client, as of the last fetch"),
        optional("client_id", "string", "client_id of the client"),
        optional("topic", "string", "Topic name; null while only the id is known"),
        optional("topic_id", "string", "Topic id, where fetches carry one"),
        required("partition", "int", "Partition index"),
        optional("isolation_level", "string", "read_uncommitted or read_committed; null: a follower"),
        required("first_ts", "timestamp", "First fetch of this day that asks for the partition, by name or not"),
        required("last_ts", "timestamp", "Last fetch of this day that asks for it, by name or not"),
        optional("fetch_offset", "bigint", "Last known offset that is fetched from or up to (exclusive end)"),
        required("fetches", "bigint", "Fetches between first_ts and last_ts"),
        required("session_epoch", "int", "Epoch of the last of them"),
        required(
            "is_open", "boolean", "Whether the partition was still in the session after the last fetch seen of it"
        ),
        required(
            "complete",
            "boolean",
            "False: the session was joined midway or fetches of it were lost, so that partitions may be missing, "
            "and ones that were taken out meanwhile may still be listed",
        ),
    ),
    key=("server", "session_id", "topic", "topic_id", "partition", "first_ts"),
    partition_by=("date",),
    checks={"times_in_order": "last_ts >= first_ts"},
    keep_days=DERIVED_DAYS,
    cluster_by=("server", "session_id"),
)

TOPICS = Table(
    "silver",
    "topics",
    "Topic id and name as the wire stated them, and when the id was valid: a slowly changing dimension",
    (
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        required("topic_id", "string", "Topic id (KIP-516)"),
        required("topic", "string", "Topic name"),
        required("first_ts", "timestamp", "First seen"),
        required("last_ts", "timestamp", "Last seen"),
        required("valid_from", "timestamp", "From when the name means this id: first_ts"),
        optional(
            "valid_to", "timestamp", "Until when (exclusive): a topic of the same name, recreated, was seen; null: now"
        ),
        required("incarnation", "int", "0 for the first topic of this name that was seen, 1 for the next …"),
        optional("is_inferred", "boolean", "Whether the name is inferred, as no message states it; null: it is stated"),
    ),
    key=("cluster", "topic_id"),
    checks={"validity_in_order": "valid_to IS NULL OR valid_to >= valid_from"},
)

BROKERS = Table(
    "silver",
    "brokers",
    "Which server address belongs to which Kafka cluster",
    (
        required("server", "string", "ip:port that answered with a cluster id, or that an answer names as its own"),
        required("cluster", "string", "Kafka cluster id; inferred without one: the least ip:port of its brokers"),
        required("first_ts", "timestamp", "First seen"),
        required("last_ts", "timestamp", "Last seen"),
        optional(
            "is_inferred", "boolean", "Whether the cluster is inferred, as no message states it; null: it is stated"
        ),
    ),
    key=("server", "cluster"),
)

MONGO_HANDSHAKES = Table(
    "silver",
    "mongo_handshakes",
    "What a MongoDB client states of itself in hello or isMaster, at the beginning of a connection",
    (
        DATE,
        required("exchange_id", "string", "The exchange that states it"),
        required("connection_id", "string", "Its TCP connection"),
        required("ts", "timestamp", "First byte of the request"),
        required("server", "string", "ip:port of the server"),
        required("client_ip", "string", "Address of the client"),
        optional("application", "string", "Name that the application gave itself (appName)"),
        optional("driver", "string", "Name of the driver"),
        optional("driver_version", "string", "Its version"),
        optional("os", "string", "Operating system of the client"),
        optional("platform", "string", "Language or runtime of the client"),
        required("compressors", "array<string>", "Compressors that the client offers"),
    ),
    key=("exchange_id",),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("connection_id",),
)

MONGO_COMMANDS = Table(
    "silver",
    "mongo_commands",
    "What one MongoDB exchange states: the command with its reply",
    (
        DATE,
        required("exchange_id", "string", "The exchange"),
        required("connection_id", "string", "Its TCP connection"),
        required("ts", "timestamp", "First byte of the request, or of the reply if there is no request"),
        required("server", "string", "ip:port of the server"),
        required("client", "string", "ip:port of the client"),
        required("client_ip", "string", "Address of the client"),
        optional("application", "string", "appName of the connection, as its handshake stated; null: it was not seen"),
        optional("driver", "string", "Driver of the connection"),
        optional("driver_version", "string", "Its version"),
        required("status", "string", "status of the exchange: paired, no_response_expected, following_response …"),
        optional(
            "opcode", "int", "Opcode on the wire of the request, or of the reply if there is none; 2012 if compressed"
        ),
        optional("request_id", "bigint", "requestID of the request, or of the reply if there is none"),
        optional(
            "reply_to", "bigint", "responseTo of the reply: of a following_response the requestID of the reply before"
        ),
        optional(
            "command", "string", "Name of the command; of legacy opcodes that of the command that took their place"
        ),
        optional("database", "string", "Database"),
        optional("collection", "string", "Collection"),
        optional(
            "cursor_id", "bigint", "The cursor asked for (getMore, killCursors), else the one that the reply opens"
        ),
        optional("cursor_left", "bigint", "The cursor that is open after the reply; 0: none"),
        optional("cursors_killed", "array<bigint>", "killCursors: the cursors that it names"),
        optional("documents_in", "bigint", "Documents to insert, or statements to update or delete"),
        optional("documents_out", "bigint", "Documents in the reply"),
        optional("n", "bigint", "n of the reply: documents inserted, matched, deleted"),
        optional("n_modified", "bigint", "nModified of the reply"),
        optional("ok", "boolean", "Whether the reply reports success; writes inside may have failed all the same"),
        optional(
            "error_code", "int", "Error of the command, else of its first failed write, else of its write concern"
        ),
        optional("error_name", "string", "Its name, if the reply states it or it is well known"),
        optional("write_errors", "int", "Writes that failed"),
        optional("read_concern", "string", "Level of the read concern, if the request names one"),
        optional("write_concern", "string", "w of the write concern, if the request names one"),
        optional("session_id", "string", "Logical session, a UUID"),
        optional(
            "txn_number", "bigint", "Of a transaction or a retryable write: the same again in a session is a retry"
        ),
        optional("is_transaction", "boolean", "Whether it is part of a transaction of several statements"),
        optional(
            "is_awaiting", "boolean", "Whether it waits by design: for data of a tailable cursor, or for a new topology"
        ),
        optional("compressor", "string", "How the request was compressed; null: it was not"),
        optional("reply_compressor", "string", "How the reply was compressed"),
        optional(
            "checksum_ok", "boolean", "Whether the request's checksum is right; null: none was sent, or not checked"
        ),
        optional("reply_checksum_ok", "boolean", "Whether the CRC-32C of the reply holds"),
        optional("is_answered_later", "boolean", "Whether more replies follow this one by themselves (exhaust)"),
        optional("max_wire_version", "int", "hello, isMaster: the newest wire version that the server speaks"),
        optional("latency_us", "bigint", "Last byte of the request to first byte of the reply, microseconds"),
        optional("request_size", "int", "Bytes of the request"),
        optional("response_size", "int", "Bytes of the reply"),
        optional("request_status", "string", "decode_status of the request"),
        optional(
            "response_status", "string", "decode_status of the reply; redacted: it answers a command with credentials"
        ),
    ),
    key=("exchange_id",),
    partition_by=("date",),
    checks={"latency_not_negative": "latency_us IS NULL OR latency_us >= 0"},
    keep_days=DERIVED_DAYS,
    cluster_by=("database", "collection", "command"),
)
