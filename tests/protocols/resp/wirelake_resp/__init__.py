"""RESP, the protocol of Redis and its kin (https://redis.io/docs/reference/protocol-spec), for Wirelake."""

from wirelake_resp.protocol import RespProtocol

__all__ = ["RespProtocol"]
