"""Removes secrets and payload from a frame before it is stored; the agent calls this before every first write."""

from __future__ import annotations

from decoder.field_hash import FieldHash
from decoder.model import Frame
from decoder.protocols import protocol_of


def redact(frame: Frame, field_hash: FieldHash | None = None) -> Frame:
    """The frame as it may be stored: credentials overwritten, payload by ``frame.payload_policy``.

    Sizes and structure stay, so that the frame still decodes; ``flags`` mark what was done. A frame that is clean is
    returned as it is.

    Args:
        frame: as it was on the wire.
        field_hash: what the policy ``hash`` hashes with.

    Raises:
        ValueError: an unknown protocol, or a policy ``hash`` without a key: nothing may be stored.
    """
    protocol = protocol_of(frame.protocol)
    if frame.payload_policy == "hash" and field_hash is None:
        raise ValueError("the payload policy 'hash' needs a key")
    return protocol.redact(frame, field_hash)


def carries_credentials(frame: Frame) -> bool:
    """See decoder.protocol.WireProtocol.carries_credentials."""
    return protocol_of(frame.protocol).carries_credentials(frame)
