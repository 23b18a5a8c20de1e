"""Removes secrets and payload from a frame before it is stored; the agent calls this before every first write."""

from __future__ import annotations

from collections.abc import Callable

from decoder.kafka.redaction import redact_frame
from decoder.model import Frame

_REDACTORS: dict[str, Callable[[Frame], Frame]] = {"kafka": redact_frame}


def redact(frame: Frame) -> Frame:
    """The frame as it may be stored: credentials overwritten, payload as ``frame.payload_policy`` says.

    Sizes and structure stay, so that the frame still decodes; ``flags`` say what was done. A frame that is clean is
    returned as it is.

    Raises:
        ValueError: a protocol without redaction rules: nothing of it may be stored.
    """
    redactor = _REDACTORS.get(frame.protocol)
    if redactor is None:
        raise ValueError(f"no redaction rules for protocol {frame.protocol!r}")
    return redactor(frame)
