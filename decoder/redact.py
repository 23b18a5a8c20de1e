"""Removes secrets and payload from a frame before it is stored; the agent calls this before every first write."""

from __future__ import annotations

from collections.abc import Callable

from decoder.field_hash import FieldHash
from decoder.kafka.redaction.frames import redact_frame
from decoder.kafka.redaction.secrets import secret_apis
from decoder.model import Frame
from decoder.mongodb.redaction.frames import redact_frame as redact_mongodb_frame

_REDACTORS: dict[str, Callable[[Frame, FieldHash | None], Frame]] = {
    "kafka": redact_frame,
    "mongodb": redact_mongodb_frame,
}


def redact(frame: Frame, field_hash: FieldHash | None = None) -> Frame:
    """The frame as it may be stored: credentials overwritten, payload as ``frame.payload_policy`` says.

    Sizes and structure stay, so that the frame still decodes; ``flags`` say what was done. A frame that is clean is
    returned as it is.

    Args:
        frame: as it was on the wire.
        field_hash: what the policy ``hash`` hashes with.

    Raises:
        ValueError: a protocol without redaction rules, or a policy ``hash`` without a key: nothing may be stored.
    """
    redactor = _REDACTORS.get(frame.protocol)
    if redactor is None:
        raise ValueError(f"no redaction rules for protocol {frame.protocol!r}")
    if frame.payload_policy == "hash" and field_hash is None:
        raise ValueError("the payload policy 'hash' needs a key")
    return redactor(frame, field_hash)


def carries_credentials(frame: Frame) -> bool:
    """Whether messages of this kind may carry credentials. Logins and administrators send them, now and then."""
    return frame.protocol == "kafka" and frame.api_key in secret_apis()
