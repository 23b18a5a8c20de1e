"""Gold: what people ask for."""

from __future__ import annotations

from pipeline.tables.bronze import DATE
from pipeline.tables.model import DERIVED_DAYS, Table, optional, required

_FORMER_STATES = (("open", "ongoing"), ("closed", "resolved"))

LOG_STATE = ("log_start_offset", "last_stable_offset", "high_watermark", "produced_offset")
"""Columns of the timeline that hold what was last known of a partition."""
OFFSET_STATE = (
    *LOG_STATE, "committed_offset", "pending_offset", "fetch_position", "last_stable_high_watermark", "last_stable_ts",
)  # fmt: skip
"""The same with what was last known of a group and of a client, and with what came with the last stable offset."""

OFFSET_TIMELINE = Table(
    "gold",
    "offset_timeline",
    "A partition, and each group that reads it, over time: one row per event, carried forward",
    (
        DATE,
        required("cluster", "string", "Kafka cluster"),
        required("topic", "string", "Topic name, or its id while the name is not known"),
        required("partition", "int", "Partition index"),
        required("group_id", "string", "Consumer group; empty for what holds without a group"),
        required("ts", "timestamp", "Time of the event"),
        required("ordinal", "int", "Orders the events of one partition, group and ts"),
        required("exchange_id", "string", "The exchange that this row comes from"),
        required(
            "kind", "string", "kind of the offset event; txn_applied, txn_discarded at the end of its transaction"
        ),
        optional("client_id", "string", "Who"),
        optional("member_id", "string", "Member of the group"),
        optional("generation", "int", "Generation of the commit"),
        optional("error_name", "string", "Error of this event; NONE if it succeeded"),
        optional("event_offset", "bigint", "The offset that this event names"),
        optional("event_next_offset", "bigint", "produced, fetched: one past the last record of this event"),
        optional("log_start_offset", "bigint", "Last known"),
        optional(
            "last_stable_offset",
            "bigint",
            "Last known, as of last_stable_ts: compare it with last_stable_high_watermark, not with high_watermark",
        ),
        optional("high_watermark", "bigint", "Last known (also from produced offsets)"),
        optional("produced_offset", "bigint", "Last known end of acknowledged produce (exclusive)"),
        optional("fetch_position", "bigint", "Last known offset that this client fetched up to (exclusive)"),
        optional("committed_offset", "bigint", "Last accepted commit of the group"),
        optional(
            "lag",
            "bigint",
            "Records from committed_offset, or log_start_offset if that is later, to high_watermark, known transaction "
            "markers left out; never below 0; null while unknown",
        ),
        optional(
            "lag_read_committed",
            "bigint",
            "Records from committed_offset to last_stable_offset: equal to lag if that is the end of the log; at least "
            "this many, as of last_stable_ts, if an open transaction held it then; null if it is older than the end of "
            "the log or the commit",
        ),
        optional(
            "lag_seconds", "double", "Age of the oldest uncommitted record, from produced events; null if not known"
        ),
        optional("pending_offset", "bigint", "Offset of the group inside a transaction that has not ended; else null"),
        optional(
            "incarnation",
            "int",
            "Which topic of this name, as in silver.topics: a recreated one begins with nothing known",
        ),
        optional(
            "lost_to_retention",
            "bigint",
            "Offsets from committed_offset to log_start_offset, which the group can no longer read; 0: none",
        ),
        optional("isolation_level", "string", "fetched, listed: what was asked for"),
        optional(
            "last_stable_high_watermark",
            "bigint",
            "High watermark in the response that stated last_stable_offset; null if it stated none. The only one to "
            "compare with: if it is greater, a transaction was open",
        ),
        optional("last_stable_ts", "timestamp", "Time of that response: the event's own ts if this event stated it"),
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

OFFSET_SNAPSHOTS = Table(
    "gold",
    "offset_snapshots",
    "Offsets known of each partition, group and client when an hour began, so that no earlier hour is read again",
    (
        required("date", "date", "UTC day of hour"),
        optional(
            "hour", "timestamp", "The hour at whose beginning this held: the last one with news, or of the day before"
        ),
        required("cluster", "string", "Kafka cluster"),
        required("topic", "string", "Topic name, or its id while the name is not known"),
        required("incarnation", "int", "Which topic of this name"),
        required("partition", "int", "Partition index"),
        required("group_id", "string", "Consumer group; empty for what holds without a group"),
        optional("client_id", "string", "Who"),
        required("ts", "timestamp", "Time of the last event of this client in this group"),
        required("exchange_id", "string", "The exchange that it comes from"),
        required("kind", "string", "kind of that event"),
        *(c for c in OFFSET_TIMELINE.columns if c.name in OFFSET_STATE),
    ),
    key=("hour", "cluster", "topic", "incarnation", "partition", "group_id", "client_id"),
    keep_days=DERIVED_DAYS,
    aged_by="ts",
    former_name="offsets_before",
)

API_LATENCY = Table(
    "gold",
    "api_latency",
    "How a Kafka api was answered, minute by minute",
    (
        DATE,
        required("minute", "timestamp", "Begin of the minute, UTC, by the exchange's ts"),
        required("server", "string", "ip:port of the broker"),
        optional("api_key", "int", "Kafka api key; null if not known"),
        optional("api_name", "string", "Name of the api"),
        optional("api_version", "int", "Version of the request"),
        optional("client_id", "string", "client_id of the requests"),
        required("exchanges", "bigint", "Exchanges"),
        required("errors", "bigint", "Those with an error code other than 0 anywhere in the answer"),
        required("unanswered", "bigint", "Those without the answer that was due"),
        required("request_bytes", "bigint", "Bytes of the request frames"),
        required("response_bytes", "bigint", "Bytes of the response frames"),
        optional(
            "p50_us",
            "bigint",
            "Service time (service_us of silver.exchanges) in microseconds, 50th percentile by nearest rank; null "
            "without answers",
        ),
        optional("p95_us", "bigint", "95th percentile"),
        optional("p99_us", "bigint", "99th percentile"),
        optional("max_us", "bigint", "Longest"),
        optional(
            "longest_wait_us",
            "bigint",
            "Longest time that a request waited behind earlier ones of its connection, before its service began",
        ),
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
        DATE,
        required("minute", "timestamp", "Begin of the minute, UTC, by the command's ts"),
        required("server", "string", "ip:port of the server"),
        optional("command", "string", "Name of the command; null if not known"),
        optional("namespace", "string", "database.collection, or the database alone"),
        optional("application", "string", "appName of the connections; null if not known"),
        required("commands", "bigint", "Commands; each further reply of an exhausting cursor counts, too"),
        required("errors", "bigint", "Those that failed, or whose write or write concern failed"),
        required("unanswered", "bigint", "Those without the reply that was due"),
        required("documents_in", "bigint", "Documents to insert, statements to update or delete"),
        required("documents_out", "bigint", "Documents in replies"),
        required("request_bytes", "bigint", "Bytes of the requests"),
        required("response_bytes", "bigint", "Bytes of the replies"),
        optional("p50_us", "bigint", "Latency in microseconds, 50th percentile by nearest rank; null without replies"),
        optional("p95_us", "bigint", "95th percentile"),
        optional("p99_us", "bigint", "99th percentile"),
        optional("max_us", "bigint", "Longest"),
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
        required("cluster", "string", "Kafka cluster id, or server ip:port while it is not known; of MongoDB ip:port"),
        required(
            "client_id", "string", "client_id, of MongoDB the application (appName); empty if the client sends none"
        ),
        required("client_ip", "string", "Address of its host"),
        required(
            "software",
            "array<string>",
            "Name and version of the library, as ApiVersions v3+ (KIP-511) or MongoDB's handshake state them",
        ),
        required("api_versions", "array<string>", "api name and version of all its requests, e.g. Fetch v12"),
        required("oldest_versions", "array<string>", "The lowest version of each api that it used"),
        required(
            "breaks_on_kafka_4", "boolean", "Whether it used a request version that Kafka 4 has removed (KIP-896)"
        ),
        required("removed_versions", "array<string>", "Those versions"),
        required("first_ts", "timestamp", "First seen"),
        required("last_ts", "timestamp", "Last seen"),
        optional("protocol", "string", "kafka or mongodb"),
    ),
    key=("cluster", "client_id", "client_ip"),
    checks={"reason_given": "(cardinality(removed_versions) > 0) = breaks_on_kafka_4"},
)

FINDINGS = Table(
    "gold",
    "findings",
    "A diagnosis with its evidence",
    (
        required("finding_id", "string", "Stable: hash of rule and subject"),
        required("rule", "string", "Name of the rule"),
        required("severity", "string", "info, warning or critical"),
        required("subject", "string", "What it is about, e.g. group/topic-partition"),
        optional(
            "state",
            "string",
            "ongoing: held at the end of the data; resolved: seen to end; unknown: its end was not seen",
            former_values=_FORMER_STATES,
        ),
        required("cluster", "string", "Kafka cluster"),
        optional("topic", "string", "Topic"),
        optional("partition", "int", "Partition"),
        optional("group_id", "string", "Consumer group"),
        required("first_ts", "timestamp", "First evidence"),
        required("last_ts", "timestamp", "Last evidence"),
        required("summary", "string", "What happened, in plain words"),
        required("evidence", "array<string>", "exchange ids"),
        required("details", "string", "JSON: the figures behind the summary"),
        required("advice", "string", "What to do"),
        optional("incident_id", "string", "The incident that it is evidence of; null in rows of older releases"),
        optional(
            "moments",
            "string",
            "JSON list: how it happened, by time, each with its exchange_id; null in rows of older releases",
        ),
    ),
    key=("finding_id",),
    keep_days=DERIVED_DAYS,
    aged_by="last_ts",
)

INCIDENTS = Table(
    "gold",
    "incidents",
    "Findings that share a cause: a root finding and what follows from it, its source, who is affected, what to do",
    (
        required("incident_id", "string", "Stable as long as its root is the same"),
        required("severity", "string", "info, warning or critical: the most severe of its findings"),
        required(
            "state",
            "string",
            "ongoing while one of its findings is, else unknown if one is, else resolved",
            former_values=_FORMER_STATES,
        ),
        required("urgency", "int", "ORDER BY urgency gives what a person must do first"),
        required("headline", "string", "Who does what to whom, in a line"),
        required("impact", "string", "How bad it is and since when, in a line"),
        required("immediate_action", "string", "What stops the damage", former_name="do_now"),
        required("remediation", "string", "What keeps it from coming again", former_name="fix"),
        required(
            "confidence",
            "string",
            "certain; likely; or cause not seen: only that something is wrong",
            former_name="certainty",
        ),
        required("reasoning", "string", "What that rests on, and how the other findings follow", former_name="why"),
        optional("source", "string", "Who causes it; null if none is named", former_name="culprit"),
        optional("affected", "string", "Who is affected: groups, clients or topics", former_name="hurt"),
        required("rule", "string", "Rule of the root"),
        required("root_id", "string", "finding_id of the root"),
        required("rules", "array<string>", "Rules of all its findings, the root's first"),
        required("findings", "array<string>", "finding_id of all its findings, the root first, effects behind causes"),
        required("links", "string", "JSON: of each finding but the root the cause that it follows from, and why"),
        required("cluster", "string", "Kafka cluster, or MongoDB server, of the root's worst finding"),
        optional("topic", "string", "Topic of that"),
        optional("partition", "int", "Partition of that"),
        optional("group_id", "string", "Consumer group of that"),
        optional("records", "bigint", "Records that wait, are lost or come again; null if not known"),
        required("partitions", "int", "Partitions that it concerns; 0 if it is not about partitions"),
        optional("growing", "boolean", "Whether more records come to wait; null if not known"),
        required("first_ts", "timestamp", "First evidence of all its findings"),
        required("last_ts", "timestamp", "Last evidence of all its findings"),
        required("sql", "string", "A query that shows it, for `wirelake sql`"),
        required("page", "string", "Where the web page shows it: path and query"),
        optional(
            "story",
            "string",
            "JSON list of 1 to 8 lines by time: ts, actor, text, exchange_id; null in rows of older releases",
        ),
    ),
    key=("incident_id",),
    keep_days=DERIVED_DAYS,
    aged_by="last_ts",
)
