"""Reads many messages in one go: by the kernel what it can, and returns which ones are left for the plain reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder import limits
from decoder.columns import Bools, Bytes, Ints, Texts, joined
from decoder.errors import DecodeError
from decoder.mongodb.codec.compression import STORED, Compression, read_compression, uncompressed
from decoder.mongodb.codec.documents import MIN_VALUE_BYTES
from decoder.mongodb.codec.wire import OP_COMPRESSED, read_header
from decoder.mongodb.kernel import fronts as kernel_fronts
from decoder.mongodb.kernel import messages as kernel
from decoder.mongodb.kernel.documents import MAX_KEYS, MOST_TIMES, ROOM, STACK_SIZE
from decoder.work import Budget

NONE = -1
"""Instead of a compressor's id, or of a place."""
_COMPRESSED_OPCODE = OP_COMPRESSED.to_bytes(4, "little")
_OPCODE_AT = 12


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """What the kernel made of a batch of messages; one entry a message.

    Attributes:
        outcomes: kernel.GIVEN_BACK, or bits of what it has: READ, HAS_NAME, HAS_CLIENT_ID.
        header, body: JSON, as ``orjson.dumps`` would write what Codec.decode gives.
        api_name, client_id: raw text.
    """

    outcomes: Bytes
    header: Texts
    body: Texts
    api_name: Texts
    client_id: Texts


@dataclass(frozen=True, slots=True)
class Fronts:
    """The fronts of a batch of messages; one row a message.

    Attributes:
        data: bytes that hold the texts.
        rows: the columns are kernel_fronts.READ and those that follow it. A message that was not read is left for
            decoder.mongodb.codec.summary.summarise.
        compressors: id by which each came, NONE if it was not compressed.
    """

    data: Bytes
    rows: Ints
    compressors: Ints


@dataclass(frozen=True, slots=True)
class _Messages:
    """Messages as the kernel takes them: those inside in the place of compressed ones."""

    texts: Texts
    lengths: Ints
    compressors: Ints


def read_batch(frames: Sequence[bytes], is_response: Bools, flags: Ints) -> ReadBatch:
    """Read messages by the kernel. Never raises on a frame's account: what it cannot read, it gives back.

    Takes up to some ten times as much memory as the messages have bytes (see compression.size_when_read).

    Args:
        frames: whole messages as on the wire.
        is_response, flags: of each message, as for Codec.decode.
    """
    count, messages = len(frames), _opened(frames, flags)
    sizes = np.diff(messages.texts.offsets)
    total = int(sizes[sizes <= kernel.MOST_BYTES].sum())
    room = (kernel.HEADER_ROOM * count, MOST_TIMES * total + ROOM * count, total + ROOM, total + ROOM)
    columns = [np.empty(size, np.uint8) for size in room]
    ends = np.empty((count, kernel.COLUMNS), np.int64)
    outcomes = np.empty(count, np.uint8)
    stack, keys = np.empty(STACK_SIZE, np.int64), np.empty(2 * MAX_KEYS, np.int64)
    kernel.read_messages(
        messages.texts.data, messages.texts.offsets, is_response.view(np.uint8), flags, messages.lengths,
        messages.compressors, *columns, ends, outcomes, stack, stack.view(np.float64), keys,
    )  # fmt: skip
    texts = [Texts(column, np.concatenate(([0], ends[:, number]))) for number, column in enumerate(columns)]
    return ReadBatch(outcomes, *texts)


def read_fronts(frames: Sequence[bytes], is_response: Bools, flags: Ints) -> Fronts:
    """The fronts of messages, as decoder.mongodb.codec.summary.summarise gives them; never raises on a frame's account.

    Args:
        frames, is_response, flags: as for :func:`read_batch`.
    """
    messages = _opened(frames, flags)
    rows = np.empty((len(frames), kernel_fronts.COLUMNS), np.int64)
    kernel_fronts.read_fronts(
        messages.texts.data, messages.texts.offsets, is_response.view(np.uint8), messages.lengths,
        messages.compressors, rows,
    )  # fmt: skip
    return Fronts(messages.texts.data, rows, messages.compressors)


def _opened(frames: Sequence[bytes], flags: Ints) -> _Messages:
    lengths = np.fromiter(map(len, frames), np.int64, len(frames))
    compressors = np.full(len(frames), NONE, np.int64)
    opened = list(frames)
    for number, frame in enumerate(frames):
        if frame.startswith(_COMPRESSED_OPCODE, _OPCODE_AT):
            inside = _inside(frame, int(flags[number]))
            if inside is not None:
                opened[number], compressors[number] = inside
    return _Messages(joined(opened), lengths, compressors)


def _inside(frame: bytes, flags: int) -> tuple[bytes, int] | None:
    """The message inside an OP_COMPRESSED, and the compressor's id; None if it cannot be opened."""
    try:
        compression = read_compression(frame, len(frame), flags)
        if read_header(frame).length != len(frame) or not _is_opened(compression, len(frame)):
            return None
        return uncompressed(frame, len(frame), compression), compression.compressor_id & ~STORED
    except DecodeError:
        return None


def _is_opened(compression: Compression, wire_bytes: int) -> bool:
    """Whether what is inside may be read by the kernel, which counts no work: it cannot hold too many values."""
    if compression.size > kernel.MOST_BYTES:
        return False
    most = compression.size // MIN_VALUE_BYTES + compression.size // limits.BYTES_PER_UNIT
    return compression.is_stored or most <= Budget.of_frame(wire_bytes, limits.MAX_BSON_VALUES).limit
