"""The columns of a list of exchanges, on whatever page."""

from __future__ import annotations

from pipeline.dashboard.web.parts.grid import Column

EXCHANGE_COLUMNS = (
    Column("ts", "time", "time"),
    Column("api_name", "api or command"),
    Column("words", "what it says", width="large", help="Question → answer, in the words of `wirelake decode`."),
    Column("client_id", "client"),
    Column("latency_us", "latency, ms", "ms"),
    Column("service_us", "service, ms", "ms", "Latency without waiting behind earlier requests of its connection."),
    Column("error_names", "errors", width="medium"),
    Column("status", "status"),
    Column("api_version", "version", "number"),
    Column("request_size", "request", "size"),
    Column("response_size", "response", "size"),
    Column("client", "from"),
    Column("server", "to"),
    Column("connection_id", "connection"),
    Column("exchange_id", "exchange"),
)
