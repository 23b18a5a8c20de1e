"""Rule ``connection_churn``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.rules.capture.thresholds import CHURN_CHECKS
from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import WASTES
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds

KAFKA_ADVICE = (
    "Now: nothing breaks, but each connection costs the broker a socket, a handshake and (with TLS) a key exchange; if "
    "it does suffer, limit them (max.connections.per.ip, max.connection.creation.rate). Fix: make one producer or "
    "consumer for the life of the process and share it (a KafkaProducer and librdkafka's handle may be used by many "
    "threads); in functions that are called, keep it outside of the handler. Look at connections.max.idle.ms if the "
    "broker or client ends them for being idle."
)
MONGO_ADVICE = (
    "Now: nothing breaks, but each connection costs the server a thread, a handshake and a login; watch "
    "connections.totalCreated of serverStatus. Fix: make one MongoClient for the life of the process (it is a pool: "
    "maxPoolSize, minPoolSize, maxIdleTimeMS) instead of one for each request; in functions that are called, keep it "
    "outside of the handler; a maxIdleTimeMS of some seconds has the same effect."
)
CHECK_ADVICE = (
    "Now: nothing to do if this is a load balancer's or a monitor's check. Fix: it counts as a client of the cluster "
    "in inventories: give it a client.id (Kafka) or appName (MongoDB) that says so, and a longer interval if many "
    "look."
)


_FETCH = (
    "Now: compare the limits of the client with the answer: the largest response that it takes "
    "(receive.message.max.bytes in librdkafka) must be larger than fetch.max.bytes, and its request timeout longer "
    "than the answer "
    "takes. Fix: raise that limit, or lower fetch.max.bytes and max.partition.fetch.bytes. The capture is whole: the "
    "client itself closed each connection."
)
_OTHER = (
    "Now: compare the limits of the client with the answer: the largest response that it takes, and its timeouts "
    "(Kafka: request.timeout.ms, receive.message.max.bytes; MongoDB: socketTimeoutMS, timeoutMS). Fix: raise the "
    "limit, or ask for less at a time. The capture is whole: the client itself closed each connection."
)
CLOSED_ADVICE = (_FETCH, _OTHER)
POLL_ADVICE = (
    "Now: nothing is lost, but each such Fetch is thrown away, and a record that comes meanwhile waits for the next "
    "connection. Fix: fetch.max.wait.ms (librdkafka: fetch.wait.max.ms) shorter than request.timeout.ms (librdkafka: "
    "socket.timeout.ms): the defaults are 500 ms and 30 s."
)


class ConnectionChurn(Rule):
    """A client connects anew for each little piece of work."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        churn_connections: Annotated[int, Field(ge=2)] = Field(
            default=30, description="Connections that one client opens within a minute"
        )
        churn_requests: Annotated[float, Field(ge=0)] = Field(
            default=3.0, description="At most so many requests beside the handshake on each (median)"
        )
        churn_checks: Annotated[int, Field(ge=3)] = CHURN_CHECKS
        churn_closed: Count = Field(
            default=3, description="Connections that a client closes, one after the other, while their answer is coming"
        )

    name = "connection_churn"
    title = "Connection churn"
    protocol = "capture"
    severities = ("warning", "info")
    reads = ("exchanges", "waiting", "commands", "connections", "gaps")
    advice = (KAFKA_ADVICE, MONGO_ADVICE, CHECK_ADVICE, *CLOSED_ADVICE, POLL_ADVICE)
    urgency = WASTES
    gathered = OF_CLIENT
    effects = (Link(("fetch_session_churn",), (CLIENT,), "each connection begins its fetch sessions anew"),)
