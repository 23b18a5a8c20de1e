"""Status of a frame that has only its beginning: the capture lost the rest, or it was never sent."""

from __future__ import annotations

from decoder.errors import DecodeError, ErrorCode
from decoder.model import CLOSED, FrameFlags, Status

_CLOSED = CLOSED.value
_BY_CLIENT = FrameFlags.CLOSED_BY_CLIENT.value


def incomplete(flags: int, stopped: int) -> tuple[Status, DecodeError]:
    """Status and error of a frame with the flag TRUNCATED.

    Args:
        flags: bits of FrameFlags.
        stopped: the byte at which reading stopped.
    """
    if flags & _CLOSED:
        who = "client" if flags & _BY_CLIENT else "server"
        detail = f"the {who} closed the connection in the middle of this message"
        return "partial", DecodeError(ErrorCode.CONNECTION_CLOSED, stopped, detail)
    detail = "the capture holds only the beginning of the frame"
    return "truncated", DecodeError(ErrorCode.FRAME_TRUNCATED, stopped, detail)
