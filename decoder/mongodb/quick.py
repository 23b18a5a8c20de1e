"""A message's header and body as JSON text, written by the kernel; the plain reader's, if the kernel gives it back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decoder.mongodb.kernel import MAX_KEYS, MOST_TIMES, ROOM, STACK_SIZE, put_body
from decoder.mongodb.summary import command_place
from decoder.mongodb.wire import CHECKSUM_PRESENT, HEADER_BYTES

MOST_BYTES = 1 << 20
"""Of a message that the kernel is given: it needs MOST_TIMES as many for the text."""


class Body(NamedTuple):
    """The JSON text of a body, and where its command's document is."""

    text: bytes
    start: int
    end: int


def write_body(data: bytes) -> Body | None:
    """The body of an OP_MSG that is not compressed, as text; None if the plain reader must read it.

    The text is what ``orjson.dumps`` makes of ``Message.body``, and the message's status is ``ok``.
    """
    place = command_place(data) if len(data) <= MOST_BYTES else None
    if place is None or data[HEADER_BYTES] & CHECKSUM_PRESENT:
        return None
    out = np.empty(MOST_TIMES * len(data) + ROOM, np.uint8)
    stack, keys = np.empty(STACK_SIZE, np.int64), np.empty(2 * MAX_KEYS, np.int64)
    size = put_body(out, np.frombuffer(data, np.uint8), *place, stack, stack.view(np.float64), keys)
    return Body(out[:size].tobytes(), *place) if size >= 0 else None
