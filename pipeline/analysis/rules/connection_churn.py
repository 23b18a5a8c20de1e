"""Rule ``connection_churn``."""

from __future__ import annotations

from pipeline.analysis.rules.case.entities import CLIENT
from pipeline.analysis.rules.case.texts import WASTES
from pipeline.analysis.rules.closed_midway import CLOSED_ADVICE
from pipeline.analysis.rules.rule import OF_CLIENT, Link, Rule

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


class ConnectionChurn(Rule):
    """A client connects anew for each little piece of work."""

    name = "connection_churn"
    title = "Connection churn"
    protocol = "capture"
    severities = ("warning", "info")
    thresholds = ("churn_connections", "churn_requests", "churn_checks", "churn_closed")
    reads = ("exchanges", "commands", "gaps")
    advice = (KAFKA_ADVICE, MONGO_ADVICE, CHECK_ADVICE, *CLOSED_ADVICE)
    urgency = WASTES
    gathered = OF_CLIENT
    effects = (Link(("fetch_session_churn",), (CLIENT,), "each connection begins its fetch sessions anew"),)
