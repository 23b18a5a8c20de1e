"""Silver: how TCP connections began, went and ended, whatever was spoken on them."""

from __future__ import annotations

from pipeline.tables.model import DERIVED_DAYS, Table, optional, required

HOWS = ("refused", "unanswered", "silent", "other", "spoke", "served", "unknown")
"""What became of a connection: docs/gaps.md states each."""

CONNECTIONS = Table(
    "silver",
    "connections",
    "A TCP connection: who opened it, what it carried, and how it ended; its row is replaced as it grows",
    (
        required("date", "date", "UTC day of the row of bronze.gaps that states it"),
        required(
            "flow_id", "string", "The same connection seen by any agent; of connections that are only counted their id"
        ),
        required("connection_id", "string", "The connection as the agent saw it that saw most of it"),
        required("agent_id", "string", "Name of that agent"),
        required("seq", "bigint", "Ordinal of the row of bronze.gaps that states it; it grows with the connection"),
        required("connections", "bigint", "1; of a flood or a scan how many connections the row counts"),
        optional(
            "counted_connection_id",
            "string",
            "The connection that counts, of a copy behind address translation or joined midway by another agent, where "
            "messages or initial sequence numbers show that they are one; null: this one counts",
        ),
        required(
            "how",
            "string",
            "refused; unanswered: no SYN was answered; silent: no data; other: neither Kafka nor MongoDB; spoke: "
            "reset, closed by the server with requests open, or not acknowledged; served: none of these; unknown: too "
            "little was captured",
        ),
        required("ended", "string", "How it ended, in words"),
        required(
            "is_failed", "boolean", "Whether the client got no connection, or lost it amid a request or a response"
        ),
        required("opened", "string", "yes, refused, unanswered, or unknown: its begin was not captured"),
        optional("client_ip", "string", "Address of the client; null where several are counted"),
        optional("client_port", "int", "Its TCP port"),
        required("server_ip", "string", "Address of the server; empty where several are counted"),
        required("server_port", "int", "Its TCP port; 0 where several are counted"),
        required("first_ts", "timestamp", "First packet"),
        required("last_ts", "timestamp", "Last packet"),
        optional("is_closed", "boolean", "Whether both sides closed it, or one reset it; null: not known"),
        optional(
            "is_interim", "boolean", "True: the connection continues, and a later row takes the place of this one"
        ),
        optional(
            "closed_by",
            "string",
            "client or server: the side of the first FIN, or of the RST, or of the first closing alert of a short TLS "
            "connection; null: neither, or one direction, is captured",
        ),
        optional("reset_by", "string", "client or server: the side of the RST"),
        optional(
            "state",
            "string",
            "What its end interrupts: asking (a request has no response), answering (amid a response), idle, "
            "or unknown",
        ),
        optional("speaks", "string", "kafka, mongodb, tls or what else was spoken"),
        optional("asks", "string", "What the client's first bytes are, if neither Kafka nor MongoDB"),
        optional("answers", "string", "What the server's first bytes are, if neither Kafka nor MongoDB"),
        optional("tls_offered", "string", "Newest TLS version that the client offers"),
        optional("tls_version", "string", "TLS version that the server chose"),
        optional("server_name", "string", "Whom the client asks for by TLS"),
        optional("alert", "string", "Who ended a TLS handshake, and the alert's name"),
        optional("is_proxied", "boolean", "Whether a PROXY header names the client"),
        optional("syns", "bigint", "SYNs of the client, without copies that a mirror shows"),
        optional(
            "client_isn",
            "bigint",
            "Initial sequence number of the client; address translation keeps it, so copies have the same",
        ),
        optional("server_isn", "bigint", "Initial sequence number of the server; null without a SYN-ACK"),
        optional("round_trip_us", "bigint", "From the SYN to its answer, if it was sent once, microseconds"),
        optional("requests", "bigint", "Requests of Kafka or MongoDB"),
        optional("responses", "bigint", "Responses"),
        optional("unanswered", "bigint", "Requests without a response"),
        optional("client_packets", "bigint", "Packets of the client"),
        optional("server_packets", "bigint", "Packets of the server"),
        optional("client_bytes", "bigint", "Bytes of TCP payload that the client sent"),
        optional("server_bytes", "bigint", "Bytes of TCP payload that the server sent"),
        optional("client_sent_again", "bigint", "Segments that the client sent again"),
        optional("server_sent_again", "bigint", "Segments that the server sent again"),
        optional("client_first_sent_again_ts", "timestamp", "First segment that the client sent again"),
        optional("server_first_sent_again_ts", "timestamp", "First segment that the server sent again"),
        optional("client_last_sent_again_ts", "timestamp", "Last segment that the client sent again"),
        optional("server_last_sent_again_ts", "timestamp", "Last segment that the server sent again"),
        optional("client_unacknowledged", "bigint", "Bytes of the client that nothing acknowledges"),
        optional("server_unacknowledged", "bigint", "Bytes of the server that nothing acknowledges"),
        optional("client_keepalives", "bigint", "Keepalives of the client"),
        optional("server_keepalives", "bigint", "Keepalives of the server"),
        optional("client_zero_windows", "bigint", "Packets by which the client asks to be sent nothing"),
        optional("server_zero_windows", "bigint", "Packets by which the server asks to be sent nothing"),
        optional("client_first_zero_window_ts", "timestamp", "First packet by which the client asks so"),
        optional("server_first_zero_window_ts", "timestamp", "First packet by which the server asks so"),
        optional("client_stalled_us", "bigint", "For how long the client asked so, microseconds"),
        optional("server_stalled_us", "bigint", "For how long the server asked so, microseconds"),
        optional("client_spoke_ts", "timestamp", "Last packet with data of the client"),
        optional("server_spoke_ts", "timestamp", "Last packet with data of the server"),
        optional("silence_us", "bigint", "How long no packet came at most, microseconds"),
        optional("silent_until_ts", "timestamp", "End of that silence"),
        optional("icmp", "string", "What ICMP errors state of its packets, in words; null: none was captured"),
        optional("icmp_type", "int", "Type of these messages"),
        optional("icmp_code", "int", "Their code"),
        optional("icmp_by", "string", "Address of who sent the first"),
        optional("icmp_of", "string", "client or server: whose packets they are about"),
        optional("icmp_mtu", "bigint", "Bytes that a packet may have there at most, where they state it"),
        optional("icmp_messages", "bigint", "How many were captured, of this type and code"),
        optional("icmp_first_ts", "timestamp", "When the first was captured"),
    ),
    key=("flow_id",),
    partition_by=("date",),
    checks={
        "how_known": f"how IN ({', '.join(map(repr, HOWS))})",
        "times_in_order": "last_ts >= first_ts",
        "counts_one_at_least": "connections >= 1",
    },
    keep_days=DERIVED_DAYS,
    cluster_by=("server_ip", "client_ip"),
)
