"""Ids of a connection, and the labels that all its frames share."""

from __future__ import annotations

import hashlib

from decoder.model import PayloadPolicy
from pipeline.capture.sessions.proxy_protocol import Client
from pipeline.capture.sessions.recognition import readable
from pipeline.capture.sessions.sides import Labels
from pipeline.capture.tcp.connection import Connection


def labels_of(
    connection: Connection, client: int, agent_id: str, policy: PayloadPolicy, protocol: str, *, proxied: Client | None
) -> Labels:
    """The labels of a recognised connection.

    Args:
        connection: it.
        client: the direction of its requests.
        agent_id, policy, protocol: as labels.
        proxied: the client that a proxy names; the ids stay those of the packets.
    """
    ends = [readable(connection.a), readable(connection.b)]
    return Labels(
        agent_id,
        policy,
        protocol,
        connection_id(connection, agent_id),
        flow_id(connection, client),
        proxied or ends[client],
        ends[1 - client],
    )


def flow_id(connection: Connection, client: int) -> str:
    """The same for each agent that saw the connection begin; ``client``: the direction of its requests."""
    ends = [readable(connection.a), readable(connection.b)]
    if connection.client_isn is not None:
        return _hash("flow", *ends[client], *ends[1 - client], connection.client_isn)
    # joined midway: the first packet is the best there is
    return _hash("flow", *ends[0], *ends[1], connection.first_ts, connection.first_seq)


def connection_id(connection: Connection, agent_id: str) -> str:
    """The same each time that a capture is read."""
    ends = [readable(connection.a), readable(connection.b)]
    return _hash(agent_id, *ends[0], *ends[1], connection.first_ts, connection.first_seq)


def _hash(*parts: str | int) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
