"""What lands, and bronze: frames and losses."""

from __future__ import annotations

from pipeline.tables.model import DERIVED_DAYS, FRAMES_DAYS, Table, optional, required

LANDING_COLUMNS = (
    required("agent_id", "string", "Name of the capture agent"),
    required(
        "connection_id", "string", "The TCP connection; the same capture read twice by one agent gives the same id"
    ),
    optional("exchange_id", "string", "The request and its response carry the same id"),
    required("seq", "bigint", "Ordinal of the frame in its direction of the connection, from 0"),
    required("direction", "string", "request (client to server) or response"),
    required("ts", "timestamp", "Capture time of the first byte, UTC, microseconds"),
    required("ts_end", "timestamp", "Capture time of the last byte, UTC, microseconds"),
    required("client_ip", "string", "Address of the side that sends requests"),
    required("client_port", "int", "Its TCP port"),
    required("server_ip", "string", "Address of the side that answers"),
    required("server_port", "int", "Its TCP port"),
    required("protocol", "string", "kafka or mongodb"),
    optional("api_key", "int", "Kafka api key (of the request, also on its response) or MongoDB opcode"),
    optional("api_version", "int", "Kafka api version of the request, also on its response"),
    optional("correlation_id", "bigint", "Kafka correlation id or MongoDB requestID"),
    optional("reply_to", "bigint", "MongoDB responseTo"),
    required("size", "int", "Bytes of the frame on the wire, without Kafka's length prefix"),
    required("frame", "binary", "The frame's bytes under the payload policy, without Kafka's length prefix"),
    required(
        "flags",
        "int",
        "Bits: 1 truncated, 2 redacted, 4 after a gap, 8 record checksums verified, 16 a checksum did "
        "not match, 32 payload removed, 64 no response expected, 128 unanswered at close, 256 orphan response, "
        "512 correlation id mismatch, 1024 raw SASL token, 2048 bytes came twice with different content, "
        "4096 record batch headers removed too, 8192 a body that did not decode removed, 16384 the reply to a command "
        "with credentials, 32768 a further reply to a request that was answered (exhaust), 65536 removed message sets "
        "left their count and first offset, 131072 a body that takes too much work removed, 262144 the capture gave a "
        "time outside of 1970 to 2199, or none: ts or ts_end is the nearest end of that span, 524288 the client closed "
        "the connection in the middle of the frame, 1048576 the server did (with 128: before it sent a byte)",
    ),
    required("flow_id", "string", "The same connection seen by any agent: addresses and initial sequence numbers"),
    required(
        "payload_policy",
        "string",
        "What of keys, values and header values was allowed to land: lengths (none of it), hash (a keyed hash), "
        "none (not even the batch headers) or full",
    ),
    optional(
        "idle_us",
        "bigint",
        "Of a response: microseconds from the last byte of the response before it on this connection to its first "
        "byte; null for the first one, after a gap, and where one of these times is not known (flag 262144)",
    ),
)

DATE = required("date", "date", "UTC day of ts")
RAW_FRAME = LANDING_COLUMNS[[c.name for c in LANDING_COLUMNS].index("frame")]

FRAMES = Table(
    "bronze",
    "frames",
    "Every captured frame, decoded or with the reason why not",
    (
        DATE,
        *(c for c in LANDING_COLUMNS if c.name != "frame"),
        optional("api_name", "string", "Name of the Kafka api, e.g. OffsetCommit"),
        optional("client_id", "string", "client_id of a request's header"),
        optional("header", "string", "JSON of the header, as Kafka's own converters write it"),
        optional("body", "string", "JSON of the body, as Kafka's own converters write it"),
        optional("record_batches", "string", "JSON array: a summary of each record batch in the frame"),
        optional(
            "embedded", "string", "JSON array: the messages inside bytes fields: group metadata, assignments, envelopes"
        ),
        required(
            "decode_status",
            "string",
            "ok, partial, unknown_api, unknown_version, orphan_response, malformed, truncated or redacted",
        ),
        optional("error_code", "string", "Why decoding stopped; a stable name"),
        optional("error_offset", "int", "Byte of the frame at which it stopped, from 0"),
        required("codec_version", "string", "Version of the codec that decoded this row"),
        RAW_FRAME,
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

FRAME_ID_SQL = "coalesce(exchange_id, concat_ws('/', connection_id, direction, seq))"
"""The exchange of a frame, or the frame itself where the agent could not number it: as SQL of Spark and DuckDB."""

GAPS = Table(
    "bronze",
    "gaps",
    "Bytes that are in no frame (lost, or under way when the capture began), and how connections ended",
    (
        DATE,
        required("agent_id", "string", "Name of the capture agent"),
        required("connection_id", "string", "The TCP connection"),
        required("seq", "bigint", "Ordinal in its direction of the first frame after the loss"),
        required("direction", "string", "request or response"),
        required("ts", "timestamp", "When the loss was noticed"),
        required(
            "bytes_lost", "bigint", "Bytes of the stream that are in no frame: missing, or skipped because of that"
        ),
        required(
            "method",
            "string",
            "How the next frame was found: length, segment_start, scan or none; budget: not read, it cost too much; "
            "speaks NAME: no loss, the server answers in another protocol (HTTP, TLS …); midway METHOD: no loss, these "
            "bytes began, or were asked for, before the capture met the connection; connection: no loss, `life` states "
            "what became of the connection",
        ),
        required("confidence", "double", "0 to 1"),
        optional(
            "life",
            "string",
            "How a connection began and ended, as JSON (docs/gaps.md lists the fields): addresses, who closed it "
            "and in what state, packets and bytes, segments sent again, silences; in rows with the method connection",
        ),
    ),
    key=("connection_id", "direction", "seq"),
    partition_by=("date",),
    keep_days=DERIVED_DAYS,
)

GAP_LANDING_COLUMNS = tuple(c for c in GAPS.columns if c.name != "date")
