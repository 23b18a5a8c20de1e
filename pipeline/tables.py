"""The one registry of tables: schema, comments, keys, partitioning and constraints of everything in the lake.

DDL, the landing files' schema, quality checks and documentation derive from it. Types are Spark SQL type names;
this module imports neither Spark nor Arrow. Times are UTC; offsets are positions in the Kafka log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FRAMES_DAYS = 30
"""Raw frames are most of the lake; what follows from them stays longer."""
DERIVED_DAYS = 180
"""Of silver and gold alike: gold is derived from silver, also anew when a late frame arrives."""
OPS_DAYS = 90

WRITTEN_BY_DIAGNOSE = "_written_by_diagnose"
"""A file in lakes that ``diagnose`` wrote. No job goes on with such a lake: it would not know what is in it."""


def quoted(text: str) -> str:
    """A Spark SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: Spark SQL type, what it means, and whether null is allowed."""

    name: str
    type: str
    comment: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table at ``<lake>/<schema>/<name>``.

    Attributes:
        key: columns that identify a row; no two rows share them; null counts as a value.
        partition_by: columns of the directory layout.
        checks: CHECK constraints by name, as SQL over the row.
        keep_days: days after which `wirelake maintain` drops a row, unless the settings say otherwise; None: never.
        aged_by: the date or timestamp that tells a row's age.
        cluster_by: what `wirelake maintain` orders the rows of a day by, so that readers skip files.
    """

    schema: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    keep_days: int | None = None
    aged_by: str = "date"
    cluster_by: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """``schema.name``."""
        return f"{self.schema}.{self.name}"

    @property
    def path(self) -> str:
        """Path below the lake's root."""
        return f"{self.schema}/{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(c.name for c in self.columns)

    @property
    def sought_by(self) -> tuple[str, ...]:
        """Columns of which a file's least and largest value are kept, by which readers skip it; never texts of JSON."""
        times = ("ts", "minute", "first_ts", "last_ts", self.aged_by)
        wanted = dict.fromkeys((*self.key, *self.cluster_by, *times))
        return tuple(name for name in wanted if name in self.column_names and name not in self.partition_by)

    def ddl(self) -> str:
        """The schema as a Spark DDL string, with comments."""
        return ", ".join(
            f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'} COMMENT {quoted(c.comment)}" for c in self.columns
        )


def _c(name: str, type_: str, comment: str) -> Column:
    return Column(name, type_, comment)


def _r(name: str, type_: str, comment: str) -> Column:
    return Column(name, type_, comment, nullable=False)


LANDING_COLUMNS = (
    _r("agent_id", "string", "Name of the capture agent"),
    _r("connection_id", "string", "The TCP connection; the same capture read twice by one agent gives the same id"),
    _c("exchange_id", "string", "The request and its response carry the same id"),
    _r("seq", "bigint", "Ordinal of the frame in its direction of the connection, from 0"),
    _r("direction", "string", "request (client to server) or response"),
    _r("ts", "timestamp", "Capture time of the first byte, UTC, microseconds"),
    _r("ts_end", "timestamp", "Capture time of the last byte, UTC, microseconds"),
    _r("client_ip", "string", "Address of the side that sends requests"),
    _r("client_port", "int", "Its TCP port"),
    _r("server_ip", "string", "Address of the side that answers"),
    _r("server_port", "int", "Its TCP port"),
    _r("protocol", "string", "kafka or mongodb"),
    _c("api_key", "int", "Kafka api key (of the request, also on its response) or MongoDB opcode"),
    _c("api_version", "int", "Kafka api version of the request, also on its response"),
    _c("correlation_id", "bigint", "Kafka correlation id or MongoDB requestID"),
    _c("reply_to", "bigint", "MongoDB responseTo"),
    _r("size", "int", "Bytes of the frame on the wire, without Kafka's length prefix"),
    _r("frame", "binary", "The frame's bytes under the payload policy, without Kafka's length prefix"),
    _r(
        "flags",
        "int",
        "Bits: 1 truncated, 2 redacted, 4 after a gap, 8 record checksums verified, 16 a checksum did "
        "not match, 32 payload removed, 64 no response expected, 128 unanswered at close, 256 orphan response, "
        "512 correlation id mismatch, 1024 raw SASL token, 2048 bytes came twice with different content, "
        "4096 record batch headers removed too, 8192 a body that did not decode removed, 16384 the reply to a command "
        "with credentials, 32768 a further reply to a request that was answered (exhaust), 65536 removed message sets "
        "left their count and first offset, 131072 a body that takes too much work removed, 262144 the capture told a "
        "time outside of 1970 to 2199, or none: ts or ts_end is the nearest end of that span",
    ),
    _r("flow_id", "string", "The same connection seen by any agent: addresses and initial sequence numbers"),
    _r(
        "payload_policy",
        "string",
        "What of keys, values and header values was allowed to land: lengths (none of it), hash (a keyed hash), "
        "none (not even the batch headers) or full",
    ),
)

_DATE = _r("date", "date", "UTC day of ts")
_FRAME = LANDING_COLUMNS[[c.name for c in LANDING_COLUMNS].index("frame")]

FRAMES = Table(
    "bronze",
    "frames",
    "Every captured frame, decoded or with the reason why not",
    (
        _DATE,
        *(c for c in LANDING_COLUMNS if c.name != "frame"),
        _c("api_name", "string", "Name of the Kafka api, e.g. OffsetCommit"),
        _c("client_id", "string", "client_id of a request's header"),
        _c("header", "string", "JSON of the header, as Kafka's own converters write it"),
        _c("body", "string", "JSON of the body, as Kafka's own converters write it"),
        _c("record_batches", "string", "JSON array: a summary of each record batch in the frame"),
        _c(
            "embedded", "string", "JSON array: the messages inside bytes fields: group metadata, assignments, envelopes"
        ),
        _r(
            "decode_status",
            "string",
            "ok, partial, unknown_api, unknown_version, orphan_response, malformed, truncated or redacted",
        ),
        _c("error_code", "string", "Why decoding stopped; a stable name"),
        _c("error_offset", "int", "Byte of the frame at which it stopped, from 0"),
        _r("codec_version", "string", "Version of the codec that decoded this row"),
        _FRAME,
    ),
    key=("connection_id", "direction", "seq"),
    partition_by=("date",),
    checks={
        "direction_known": "direction IN ('request', 'response')",
        "error_has_code": "decode_status = 'ok' OR error_code IS NOT NULL",
    },
    keep_days=FRAMES_DAYS,
    cluster_by=("connection_id",),
)

GAPS = Table(
    "bronze",
    "gaps",
    "Bytes that the capture lost, and how the stream was found again",
    (
        _DATE,
        _r("agent_id", "string", "Name of the capture agent"),
        _r("connection_id", "string", "The TCP connection"),
        _r("seq", "bigint", "Ordinal in its direction of the first frame after the loss"),
        _r("direction", "string", "request or response"),
        _r("ts", "timestamp", "When the loss was noticed"),
        _r("bytes_lost", "bigint", "Bytes of the stream that are in no frame: missing, or skipped because of that"),
        _r(
            "method",
            "string",
            "How the next frame was found: length, segment_start, scan or none; budget: not read, it cost too much",
        ),
        _r("confidence", "double", "0 to 1"),
    ),
    key=("connection_id", "direction", "seq"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
)

GAP_LANDING_COLUMNS = tuple(c for c in GAPS.columns if c.name != "date")

_EXCHANGE_CONTEXT = (
    _r("connection_id", "string", "The TCP connection"),
    _r("agent_id", "string", "Name of the capture agent"),
    _r("flow_id", "string", "The same connection seen by any agent"),
    _r("protocol", "string", "kafka or mongodb"),
    _r("client_ip", "string", "Address of the client"),
    _r("client_port", "int", "Its TCP port"),
    _r("server_ip", "string", "Address of the server"),
    _r("server_port", "int", "Its TCP port"),
)

EXCHANGES = Table(
    "silver",
    "exchanges",
    "A request together with its response",
    (
        _DATE,
        _r("exchange_id", "string", "Id of the exchange"),
        *_EXCHANGE_CONTEXT,
        _c("api_key", "int", "Kafka api key or MongoDB opcode"),
        _c("api_name", "string", "Name of the api"),
        _c("api_version", "int", "Version of the request"),
        _c("correlation_id", "bigint", "Correlation id of the request (of the response if that is all we have)"),
        _c("client_id", "string", "client_id of the request"),
        _r("ts", "timestamp", "request_ts, or response_ts when the request was not seen"),
        _c("request_ts", "timestamp", "First byte of the request"),
        _c("response_ts", "timestamp", "First byte of the response"),
        _c(
            "latency_us",
            "bigint",
            "Last byte of the request to first byte of the response, microseconds; null "
            "if one of the times is not known (flag 262144)",
        ),
        _c("request_size", "int", "Bytes of the request frame"),
        _c("response_size", "int", "Bytes of the response frame"),
        _r(
            "status",
            "string",
            "paired, no_response_expected, unanswered, pending, orphan_response, or following_response: one that came "
            "by itself after another one (MongoDB's exhaust)",
        ),
        _c(
            "error_codes",
            "array<int>",
            "Distinct error codes, ascending: of Kafka the non-zero ones anywhere in the response, of MongoDB those of "
            "the command, of its writes and of its write concern",
        ),
        _c("error_names", "array<string>", "Their names, in the same order"),
        _c("request_status", "string", "decode_status of the request"),
        _c("response_status", "string", "decode_status of the response"),
        _c("request_body", "string", "JSON of the request's body"),
        _c("response_body", "string", "JSON of the response's body"),
        _c("request_embedded", "string", "JSON array: the messages inside bytes fields of the request"),
        _c("response_embedded", "string", "JSON array: the messages inside bytes fields of the response"),
        _c("request_flags", "int", "flags of the request's frame, as in bronze.frames"),
        _c("response_flags", "int", "flags of the response's frame"),
        _c("request_header", "string", "MongoDB: JSON of the request's header; null: all of it stands in columns"),
        _c("response_header", "string", "MongoDB: JSON of the response's header"),
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

COPIES = Table(
    "silver",
    "copies",
    "A connection that another agent saw as well: in this hour the other's exchanges count in what is derived",
    (
        _r("date", "date", "UTC day of hour"),
        _r("hour", "timestamp", "Begin of the hour, UTC, by the ts of exchanges"),
        _r("connection_id", "string", "The copy that does not count"),
        _r("agent_id", "string", "The agent that saw it"),
        _r("flow_id", "string", "What the copies have in common"),
        _r("counted_agent_id", "string", "The agent whose copy counts"),
    ),
    key=("connection_id", "hour"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
)

OPEN_EXCHANGES = Table(
    "silver",
    "open_exchanges",
    "Halves that wait for their other half; rewritten by each batch",
    tuple(c for c in FRAMES.columns if c.name not in {"frame", "record_batches"}),
    key=("exchange_id", "direction"),
)

OFFSET_EVENTS = Table(
    "silver",
    "offset_events",
    "What one exchange says of one partition",
    (
        _DATE,
        _r("exchange_id", "string", "The exchange that says it"),
        _r("ts", "timestamp", "When it was said: the response's first byte, or the request's if there is no response"),
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("server", "string", "ip:port of the broker that answered"),
        _r("client", "string", "ip:port of the client"),
        _c("topic", "string", "Topic name; null while only the id is known"),
        _c("topic_id", "string", "Topic id (KIP-516), where the exchange carries one"),
        _r("partition", "int", "Partition index"),
        _r(
            "kind",
            "string",
            "produced, produce_rejected, fetched, fetch_rejected, committed, commit_rejected, "
            "fetched_commit, listed, txn_committed, txn_commit_rejected or fetch_forgotten (taken out of the session)",
        ),
        _r("ordinal", "int", "Position among the events of the same exchange, partition and kind"),
        _c("offset", "bigint", "produced: first offset; fetched: fetch offset; commits: next offset to read"),
        _c("next_offset", "bigint", "produced, fetched: one past the last record seen"),
        _c("records", "bigint", "Records in the batches seen"),
        _c("high_watermark", "bigint", "As the response says"),
        _c("last_stable_offset", "bigint", "As the response says"),
        _c("log_start_offset", "bigint", "As the response says"),
        _c("leader_epoch", "int", "As the exchange says"),
        _c("group_id", "string", "Consumer group"),
        _c("member_id", "string", "Member of the group"),
        _c("generation", "int", "Generation (or member epoch) of the commit"),
        _c("client_id", "string", "client_id of the request"),
        _c("isolation_level", "string", "read_uncommitted or read_committed (fetched, listed)"),
        _c("error_code", "int", "Kafka error code of this partition; 0 is none"),
        _c("error_name", "string", "Its name"),
        _c("producer_id", "bigint", "Producer of the (last) batch or transaction"),
        _c("producer_epoch", "int", "Its epoch"),
        _c("transactional_id", "string", "Its transactional id, if the exchange says it"),
        _c("list_timestamp", "bigint", "listed: the timestamp asked for; -1 latest, -2 earliest"),
        _c("metadata", "string", "commits: the metadata string"),
        _c("session_id", "int", "fetches: the fetch session (KIP-227); null outside of one"),
        _c("session_epoch", "int", "fetches: epoch in that session; 0 begins it with its full set of partitions"),
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
        _DATE,
        _r("exchange_id", "string", "The exchange that carried it"),
        _r("ts", "timestamp", "When it was seen"),
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("server", "string", "ip:port of the broker"),
        _c("client_id", "string", "client_id of the request"),
        _c("topic", "string", "Topic name; null while only the id is known"),
        _c("topic_id", "string", "Topic id"),
        _r("partition", "int", "Partition index"),
        _r("source", "string", "produce or fetch"),
        _r("ordinal", "int", "Position in the records field of this partition"),
        _c("base_offset", "bigint", "First offset; of Produce as the response tells it, null if it does not"),
        _c("last_offset", "bigint", "Last offset, inclusive"),
        _c("records", "int", "Number of records; null if a compressed v0/v1 message cannot be opened"),
        _c("size", "int", "Bytes of the batch with its header"),
        _c("magic", "int", "Message format: 0, 1 or 2"),
        _c("compression", "string", "none, gzip, snappy, lz4 or zstd"),
        _c("timestamp_type", "string", "CreateTime or LogAppendTime"),
        _c("base_timestamp", "bigint", "ms since the epoch"),
        _c("max_timestamp", "bigint", "ms since the epoch"),
        _c("producer_id", "bigint", "-1: none"),
        _c("producer_epoch", "int", "-1: none"),
        _c("base_sequence", "int", "-1: none"),
        _c("is_transactional", "boolean", "Part of a transaction"),
        _c("is_control", "boolean", "A control batch (transaction marker …)"),
        _c("control_type", "string", "ABORT, COMMIT, LEADER_CHANGE …"),
        _c("crc_valid", "boolean", "Checksum verdict; null where it could not be checked"),
    ),
    key=("exchange_id", "topic", "topic_id", "partition", "source", "ordinal"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("topic", "partition"),
)

STATE_EVENTS = Table(
    "silver",
    "state_events",
    "What one exchange says of groups, transactions, fetch sessions and client software",
    (
        _DATE,
        _r("exchange_id", "string", "The exchange that says it"),
        _r("connection_id", "string", "Its TCP connection"),
        _r("ts", "timestamp", "When it was said: the response's first byte, or the request's if there is no response"),
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("server", "string", "ip:port of the broker that answered"),
        _r("client", "string", "ip:port of the client"),
        _c("client_id", "string", "client_id of the request"),
        _r(
            "kind",
            "string",
            "join, assignment, heartbeat, leave or group (another request in a group's name); txn_init, "
            "txn_add_partition, txn_add_group, txn_end or txn_marker; fetch_session; software",
        ),
        _r("ordinal", "int", "Position among the statements of the same exchange"),
        _c("group_id", "string", "Consumer group"),
        _c("member_id", "string", "Member of the group that this is about"),
        _c("generation", "int", "Generation of the group or, in the consumer protocol (KIP-848), epoch of the member"),
        _c("group_protocol", "string", "classic or consumer (KIP-848)"),
        _c("topic", "string", "Topic name; null while only the id is known, and in an assignment of nothing"),
        _c("topic_id", "string", "Topic id, where the exchange carries one"),
        _c("partition", "int", "Partition index; null in an assignment of nothing"),
        _c("transactional_id", "string", "Transactional id"),
        _c("producer_id", "bigint", "Its producer id"),
        _c("producer_epoch", "int", "Its epoch; after KIP-890 each transaction has one of its own"),
        _c("committed", "boolean", "txn_end, txn_marker: true commits, false aborts"),
        _c("session_id", "int", "fetch_session: id of the session (KIP-227)"),
        _c("session_epoch", "int", "fetch_session: 0 begins the session, -1 ends it, else one more than before"),
        _c("software_name", "string", "software: the client library as it names itself (KIP-511)"),
        _c("software_version", "string", "software: its version"),
        _c("error_code", "int", "Kafka error code of the answer; 0 is none, null: no answer"),
        _c("error_name", "string", "Its name"),
    ),
    key=("exchange_id", "ordinal"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("kind", "group_id"),
)

ASSIGNMENTS = Table(
    "silver",
    "assignments",
    "Who was given which partition in which generation of a group; the view partition_owners tells until when",
    (
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("group_id", "string", "Consumer group"),
        _r("generation", "int", "Generation of the group or, in the consumer protocol, epoch of the member"),
        _r("member_id", "string", "Member of the group"),
        _c("topic", "string", "Topic name; null while only the id is known, and where the member was given nothing"),
        _c("partition", "int", "Partition index; null: the member was given nothing"),
        _c("topic_id", "string", "Topic id, where the assignment names it by that (KIP-848)"),
        _r("group_protocol", "string", "classic (JoinGroup, SyncGroup) or consumer (KIP-848)"),
        _r("server", "string", "ip:port of the coordinator that said it first"),
        _c("client_id", "string", "client_id of the member; null while only the group's leader has told of it"),
        _r("first_ts", "timestamp", "First told"),
        _r("last_ts", "timestamp", "Last told"),
        _r("exchange_id", "string", "The exchange that told it first"),
    ),
    key=("cluster", "group_id", "generation", "member_id", "topic", "topic_id", "partition"),
    checks={"times_in_order": "last_ts >= first_ts"},
    keep_days=DERIVED_DAYS,
    aged_by="last_ts",
)

TRANSACTIONS = Table(
    "silver",
    "transactions",
    "A transaction of a producer, from its first request to its end (KIP-98, KIP-890)",
    (
        _r("date", "date", "UTC day of first_ts"),
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("transactional_id", "string", "Transactional id"),
        _r("producer_id", "bigint", "Producer id"),
        _r("producer_epoch", "int", "Epoch of the producer in this transaction"),
        _r("first_exchange_id", "string", "The exchange that began it"),
        _c("client_id", "string", "client_id of the producer"),
        _c("client", "string", "ip:port of the producer"),
        _r(
            "state",
            "string",
            "ongoing; committing, aborting: its end was accepted; committed, aborted: its markers were seen on every "
            "partition, or the producer could go on; unknown: frames were lost before its end was seen",
        ),
        _r("partitions", "array<string>", "topic-partition of all that it writes to, in order of name"),
        _r("marked_partitions", "array<string>", "Those of them whose marker was seen"),
        _r("groups", "array<string>", "Consumer groups whose offsets it commits"),
        _r("records", "bigint", "Records produced in it, as far as seen"),
        _r("first_ts", "timestamp", "Its first request"),
        _c("end_ts", "timestamp", "When its end was accepted, or else its first marker seen; null while open"),
        _r("last_ts", "timestamp", "Last seen: a request or marker"),
        _c("duration_us", "bigint", "first_ts to end_ts, microseconds; null while open"),
        _c("end_exchange_id", "string", "The exchange that ended it"),
        _r(
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
        _r("date", "date", "UTC day of the fetches"),
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("server", "string", "ip:port of the broker that keeps the session"),
        _r("session_id", "int", "Id of the session on that broker"),
        _r("client", "string", "ip:port of the client, as of the last fetch"),
        _c("client_id", "string", "client_id of the client"),
        _c("topic", "string", "Topic name; null while only the id is known"),
        _c("topic_id", "string", "Topic id, where fetches carry one"),
        _r("partition", "int", "Partition index"),
        _c("isolation_level", "string", "read_uncommitted or read_committed; null: a follower"),
        _r("first_ts", "timestamp", "First fetch of this day that asks for the partition, said or not"),
        _r("last_ts", "timestamp", "Last fetch of this day that asks for it, said or not"),
        _c("fetch_offset", "bigint", "Last known offset that is fetched from or up to (exclusive end)"),
        _r("fetches", "bigint", "Fetches between first_ts and last_ts"),
        _r("session_epoch", "int", "Epoch of the last of them"),
        _r("is_open", "boolean", "Whether the partition was still in the session after the last fetch seen of it"),
        _r(
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
    "Topic id and name as the wire said them, and when the id was valid: a slowly changing dimension",
    (
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known"),
        _r("topic_id", "string", "Topic id (KIP-516)"),
        _r("topic", "string", "Topic name"),
        _r("first_ts", "timestamp", "First seen"),
        _r("last_ts", "timestamp", "Last seen"),
        _r("valid_from", "timestamp", "From when the name means this id: first_ts"),
        _c("valid_to", "timestamp", "Until when (exclusive): a topic of the same name, made anew, was seen; null: now"),
        _r("incarnation", "int", "0 for the first topic of this name that was seen, 1 for the next …"),
    ),
    key=("cluster", "topic_id"),
    checks={"validity_in_order": "valid_to IS NULL OR valid_to >= valid_from"},
)

BROKERS = Table(
    "silver",
    "brokers",
    "Which server address belongs to which Kafka cluster",
    (
        _r("server", "string", "ip:port that answered with a cluster id"),
        _r("cluster", "string", "Kafka cluster id"),
        _r("first_ts", "timestamp", "First seen"),
        _r("last_ts", "timestamp", "Last seen"),
    ),
    key=("server", "cluster"),
)

MONGO_HANDSHAKES = Table(
    "silver",
    "mongo_handshakes",
    "What a MongoDB client says of itself in hello or isMaster, at the beginning of a connection",
    (
        _DATE,
        _r("exchange_id", "string", "The exchange that says it"),
        _r("connection_id", "string", "Its TCP connection"),
        _r("ts", "timestamp", "First byte of the request"),
        _r("server", "string", "ip:port of the server"),
        _r("client_ip", "string", "Address of the client"),
        _c("application", "string", "Name that the application gave itself (appName)"),
        _c("driver", "string", "Name of the driver"),
        _c("driver_version", "string", "Its version"),
        _c("os", "string", "Operating system of the client"),
        _c("platform", "string", "Language or runtime of the client"),
        _r("compressors", "array<string>", "Compressors that the client offers"),
    ),
    key=("exchange_id",),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
    cluster_by=("connection_id",),
)

MONGO_COMMANDS = Table(
    "silver",
    "mongo_commands",
    "What one MongoDB exchange says: the command with its reply",
    (
        _DATE,
        _r("exchange_id", "string", "The exchange"),
        _r("connection_id", "string", "Its TCP connection"),
        _r("ts", "timestamp", "First byte of the request, or of the reply if there is no request"),
        _r("server", "string", "ip:port of the server"),
        _r("client", "string", "ip:port of the client"),
        _r("client_ip", "string", "Address of the client"),
        _c("application", "string", "appName of the connection, as its handshake said; null: it was not seen"),
        _c("driver", "string", "Driver of the connection"),
        _c("driver_version", "string", "Its version"),
        _r("status", "string", "status of the exchange: paired, no_response_expected, following_response …"),
        _c("opcode", "int", "Opcode on the wire of the request, or of the reply if there is none; 2012 if compressed"),
        _c("request_id", "bigint", "requestID of the request, or of the reply if there is none"),
        _c("reply_to", "bigint", "responseTo of the reply: of a following_response the requestID of the reply before"),
        _c("command", "string", "Name of the command; of legacy opcodes that of the command that took their place"),
        _c("database", "string", "Database"),
        _c("collection", "string", "Collection"),
        _c("cursor_id", "bigint", "The cursor asked for (getMore, killCursors), else the one that the reply opens"),
        _c("cursor_left", "bigint", "The cursor that is open after the reply; 0: none"),
        _c("cursors_killed", "array<bigint>", "killCursors: the cursors that it names"),
        _c("documents_in", "bigint", "Documents to insert, or statements to update or delete"),
        _c("documents_out", "bigint", "Documents in the reply"),
        _c("n", "bigint", "n of the reply: documents inserted, matched, deleted"),
        _c("n_modified", "bigint", "nModified of the reply"),
        _c("ok", "boolean", "Whether the reply says so; writes inside may have failed all the same"),
        _c("error_code", "int", "Error of the command, else of its first failed write, else of its write concern"),
        _c("error_name", "string", "Its name, if the reply says it or it is well known"),
        _c("write_errors", "int", "Writes that failed"),
        _c("read_concern", "string", "Level of the read concern, if the request names one"),
        _c("write_concern", "string", "w of the write concern, if the request names one"),
        _c("session_id", "string", "Logical session, a UUID"),
        _c("txn_number", "bigint", "Of a transaction or a retryable write: the same again in a session is a retry"),
        _c("is_transaction", "boolean", "Whether it is part of a transaction of several statements"),
        _c(
            "is_awaiting", "boolean", "Whether it waits by design: for data of a tailable cursor, or for a new topology"
        ),
        _c("compressor", "string", "How the request was compressed; null: it was not"),
        _c("reply_compressor", "string", "How the reply was compressed"),
        _c("checksum_ok", "boolean", "Whether the request's checksum is right; null: none was sent, or not checked"),
        _c("reply_checksum_ok", "boolean", "The same of the reply"),
        _c("is_answered_later", "boolean", "Whether more replies follow this one by themselves (exhaust)"),
        _c("latency_us", "bigint", "Last byte of the request to first byte of the reply, microseconds"),
        _c("request_size", "int", "Bytes of the request"),
        _c("response_size", "int", "Bytes of the reply"),
        _c("request_status", "string", "decode_status of the request"),
        _c("response_status", "string", "decode_status of the reply; redacted: it answers a command with credentials"),
    ),
    key=("exchange_id",),
    partition_by=("date",),
    checks={"latency_not_negative": "latency_us IS NULL OR latency_us >= 0"},
    keep_days=DERIVED_DAYS,
    cluster_by=("database", "collection", "command"),
)

LOG_STATE = ("log_start_offset", "last_stable_offset", "high_watermark", "produced_offset")
"""Columns of the timeline that hold what was last known of a partition."""
OFFSET_STATE = (*LOG_STATE, "committed_offset", "pending_offset", "fetch_position")
"""The same with what was last known of a group and of a client."""

OFFSET_TIMELINE = Table(
    "gold",
    "offset_timeline",
    "A partition, and each group that reads it, over time: one row per event, carried forward",
    (
        _DATE,
        _r("cluster", "string", "Kafka cluster"),
        _r("topic", "string", "Topic name, or its id while the name is not known"),
        _r("partition", "int", "Partition index"),
        _r("group_id", "string", "Consumer group; empty for what holds without a group"),
        _r("ts", "timestamp", "Time of the event"),
        _r("ordinal", "int", "Orders the events of one partition, group and ts"),
        _r("exchange_id", "string", "The exchange that this row comes from"),
        _r("kind", "string", "kind of the offset event; txn_applied, txn_discarded at the end of its transaction"),
        _c("client_id", "string", "Who"),
        _c("member_id", "string", "Member of the group"),
        _c("generation", "int", "Generation of the commit"),
        _c("error_name", "string", "Error of this event; NONE if it succeeded"),
        _c("event_offset", "bigint", "The offset that this event names"),
        _c("event_next_offset", "bigint", "produced, fetched: one past the last record of this event"),
        _c("log_start_offset", "bigint", "Last known"),
        _c("last_stable_offset", "bigint", "Last known"),
        _c("high_watermark", "bigint", "Last known (also from produced offsets)"),
        _c("produced_offset", "bigint", "Last known end of acknowledged produce (exclusive)"),
        _c("fetch_position", "bigint", "Last known offset that this client fetched up to (exclusive)"),
        _c("committed_offset", "bigint", "Last accepted commit of the group"),
        _c("lag", "bigint", "high_watermark - committed_offset, never below 0; null while either is unknown"),
        _c("lag_read_committed", "bigint", "last_stable_offset - committed_offset, never below 0"),
        _c("lag_seconds", "double", "Age of the oldest uncommitted record, from produced events; null if not known"),
        _c("pending_offset", "bigint", "Offset of the group inside a transaction that has not ended; else null"),
        _c(
            "incarnation",
            "int",
            "Which topic of this name, as in silver.topics: one made anew begins with nothing known",
        ),
    ),
    key=("cluster", "topic", "partition", "group_id", "ts", "ordinal"),
    partition_by=("date",),
    checks={
        "lag_not_negative": "lag IS NULL OR lag >= 0",
        "lag_read_committed_not_negative": "lag_read_committed IS NULL OR lag_read_committed >= 0",
    },
    keep_days=DERIVED_DAYS,
    cluster_by=("topic", "partition", "group_id"),
)

OFFSETS_BEFORE = Table(
    "gold",
    "offsets_before",
    "What was known of each partition, group and client when an hour began, so that no earlier one is read again",
    (
        _r("date", "date", "UTC day of hour"),
        _c("hour", "timestamp", "The hour at whose beginning this held: the last one with news, or of the day before"),
        _r("cluster", "string", "Kafka cluster"),
        _r("topic", "string", "Topic name, or its id while the name is not known"),
        _r("incarnation", "int", "Which topic of this name"),
        _r("partition", "int", "Partition index"),
        _r("group_id", "string", "Consumer group; empty for what holds without a group"),
        _c("client_id", "string", "Who"),
        _r("ts", "timestamp", "Time of the last event of this client in this group"),
        _r("exchange_id", "string", "The exchange that it comes from"),
        _r("kind", "string", "kind of that event"),
        *(c for c in OFFSET_TIMELINE.columns if c.name in OFFSET_STATE),
    ),
    key=("hour", "cluster", "topic", "incarnation", "partition", "group_id", "client_id"),
    keep_days=DERIVED_DAYS,
    aged_by="ts",
)

API_LATENCY = Table(
    "gold",
    "api_latency",
    "How a Kafka api was answered, minute by minute",
    (
        _DATE,
        _r("minute", "timestamp", "Begin of the minute, UTC, by the exchange's ts"),
        _r("server", "string", "ip:port of the broker"),
        _c("api_key", "int", "Kafka api key; null if not known"),
        _c("api_name", "string", "Name of the api"),
        _c("api_version", "int", "Version of the request"),
        _c("client_id", "string", "client_id of the requests"),
        _r("exchanges", "bigint", "Exchanges"),
        _r("errors", "bigint", "Those with an error code other than 0 anywhere in the answer"),
        _r("unanswered", "bigint", "Those without the answer that was due"),
        _r("request_bytes", "bigint", "Bytes of the request frames"),
        _r("response_bytes", "bigint", "Bytes of the response frames"),
        _c("p50_us", "bigint", "Latency in microseconds, 50th percentile by nearest rank; null without answers"),
        _c("p95_us", "bigint", "95th percentile"),
        _c("p99_us", "bigint", "99th percentile"),
        _c("max_us", "bigint", "Longest"),
    ),
    key=("minute", "server", "api_key", "api_name", "api_version", "client_id"),
    partition_by=("date",),
    checks={"counts_in_order": "errors <= exchanges AND unanswered <= exchanges"},
    keep_days=DERIVED_DAYS,
    cluster_by=("minute",),
)

MONGO_MINUTES = Table(
    "gold",
    "mongo_commands",
    "How a MongoDB command was answered, minute by minute",
    (
        _DATE,
        _r("minute", "timestamp", "Begin of the minute, UTC, by the command's ts"),
        _r("server", "string", "ip:port of the server"),
        _c("command", "string", "Name of the command; null if not known"),
        _c("namespace", "string", "database.collection, or the database alone"),
        _c("application", "string", "appName of the connections; null if not known"),
        _r("commands", "bigint", "Commands; each further reply of an exhausting cursor counts, too"),
        _r("errors", "bigint", "Those that failed, or of which a write or the write concern failed"),
        _r("unanswered", "bigint", "Those without the reply that was due"),
        _r("documents_in", "bigint", "Documents to insert, statements to update or delete"),
        _r("documents_out", "bigint", "Documents in replies"),
        _r("request_bytes", "bigint", "Bytes of the requests"),
        _r("response_bytes", "bigint", "Bytes of the replies"),
        _c("p50_us", "bigint", "Latency in microseconds, 50th percentile by nearest rank; null without replies"),
        _c("p95_us", "bigint", "95th percentile"),
        _c("p99_us", "bigint", "99th percentile"),
        _c("max_us", "bigint", "Longest"),
    ),
    key=("minute", "server", "command", "namespace", "application"),
    partition_by=("date",),
    checks={"counts_in_order": "errors <= commands AND unanswered <= commands"},
    keep_days=DERIVED_DAYS,
    cluster_by=("minute",),
)

CLIENTS = Table(
    "gold",
    "clients",
    "Client inventory: which software speaks which versions, and does Kafka 4 still understand it (KIP-896)?",
    (
        _r("cluster", "string", "Kafka cluster id, or server ip:port while it is not known; of MongoDB ip:port"),
        _r("client_id", "string", "client_id, of MongoDB the application (appName); empty if the client sends none"),
        _r("client_ip", "string", "Address of its host"),
        _r(
            "software",
            "array<string>",
            "Name and version of the library, as ApiVersions v3+ (KIP-511) or MongoDB's handshake say them",
        ),
        _r("api_versions", "array<string>", "api name and version of all its requests, e.g. Fetch v12"),
        _r("oldest_versions", "array<string>", "The lowest version of each api that it used"),
        _r("breaks_on_kafka_4", "boolean", "Whether it used a request version that Kafka 4 has removed (KIP-896)"),
        _r("removed_versions", "array<string>", "Those versions"),
        _r("first_ts", "timestamp", "First seen"),
        _r("last_ts", "timestamp", "Last seen"),
        _c("protocol", "string", "kafka or mongodb"),
    ),
    key=("cluster", "client_id", "client_ip"),
    checks={"reason_given": "breaks_on_kafka_4 = (size(removed_versions) > 0)"},
)

FINDINGS = Table(
    "gold",
    "findings",
    "A diagnosis with its evidence",
    (
        _r("finding_id", "string", "Stable: hash of rule and subject"),
        _r("rule", "string", "Name of the rule"),
        _r("severity", "string", "info, warning or critical"),
        _r("subject", "string", "What it is about, e.g. group/topic-partition"),
        _c("state", "string", "open if it still held at the end of the data, else closed"),
        _r("cluster", "string", "Kafka cluster"),
        _c("topic", "string", "Topic"),
        _c("partition", "int", "Partition"),
        _c("group_id", "string", "Consumer group"),
        _r("first_ts", "timestamp", "First evidence"),
        _r("last_ts", "timestamp", "Last evidence"),
        _r("summary", "string", "What happened, in plain words"),
        _r("evidence", "array<string>", "exchange ids"),
        _r("details", "string", "JSON: the figures behind the summary"),
        _r("advice", "string", "What to do"),
    ),
    key=("finding_id",),
    keep_days=DERIVED_DAYS,
    aged_by="last_ts",
)

STREAM_PROGRESS = Table(
    "ops",
    "stream_progress",
    "What each batch of the streaming job did",
    (
        _r("query", "string", "Name of the query"),
        _r("batch_id", "bigint", "Batch id of its checkpoint"),
        _r("checkpoint", "string", "Id of the checkpoint"),
        _r("rows_in", "bigint", "Rows read"),
        _r("rows_out", "bigint", "Rows written to the main table"),
        _r("finished_at", "timestamp", "Wall clock at the end of the batch"),
    ),
    key=("query", "checkpoint", "batch_id"),
    keep_days=OPS_DAYS,
    aged_by="finished_at",
)

LANDING_FILES = Table(
    "ops",
    "landing_files",
    "Which file of the landing zone was read in which batch, and which was not",
    (
        _r("query", "string", "Name of the query that read it: frames or gaps"),
        _r("file", "string", "URI of the file"),
        _r("rows", "bigint", "Rows that were read of it"),
        _r("bytes", "bigint", "Size of the file; of a lost one as its manifest says"),
        _r("modified_at", "timestamp", "Its modification time; of a lost one the time of its first row"),
        _r("batch_id", "bigint", "Batch id of the query's checkpoint; -1: found missing outside of batches"),
        _r("checkpoint", "string", "Id of the checkpoint; empty: found missing outside of batches"),
        _c(
            "status",
            "string",
            "read; or why not: lost (deleted before), damaged (not what its manifest says), unreadable (no landing "
            "file), unlisted (without a manifest, where the settings demand one); null: read, by an older release",
        ),
        _c("reason", "string", "Why it was not read, in words"),
    ),
    key=("query", "checkpoint", "batch_id", "file"),
)

QUALITY_RESULTS = Table(
    "ops",
    "quality_results",
    "One row per expectation and run of `wirelake check`",
    (
        _r("run_id", "string", "Id of the run"),
        _r("run_time", "timestamp", "When it ran"),
        _r("table_name", "string", "Table that was checked"),
        _r("name", "string", "Name of the expectation"),
        _c("column_name", "string", "Column, if it is about one"),
        _r("severity", "string", "critical or warning"),
        _r("success", "boolean", "Whether it held"),
        _c("rows_checked", "bigint", "Rows looked at"),
        _c("rows_failed", "bigint", "Rows that violate it"),
        _c("message", "string", "What was expected and seen; never a sample value"),
    ),
    key=("run_id", "table_name", "name", "column_name"),
    keep_days=OPS_DAYS,
    aged_by="run_time",
)

TABLES: dict[str, Table] = {
    t.full_name: t
    for t in (
        FRAMES,
        GAPS,
        EXCHANGES,
        OPEN_EXCHANGES,
        COPIES,
        OFFSET_EVENTS,
        RECORD_BATCHES,
        STATE_EVENTS,
        ASSIGNMENTS,
        TRANSACTIONS,
        FETCH_SESSIONS,
        TOPICS,
        BROKERS,
        MONGO_HANDSHAKES,
        MONGO_COMMANDS,
        OFFSET_TIMELINE,
        OFFSETS_BEFORE,
        API_LATENCY,
        MONGO_MINUTES,
        CLIENTS,
        FINDINGS,
        STREAM_PROGRESS,
        LANDING_FILES,
        QUALITY_RESULTS,
    )
}
