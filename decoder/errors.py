"""Error codes: the stable strings of the ``error_code`` column, each with its meaning.

The decoder reports what it cannot read in a :class:`~decoder.model.Message`; nothing of this leaves
``Codec.decode`` as an exception. Inside, readers raise :class:`DecodeError`.
"""

from __future__ import annotations

from enum import Enum


class ErrorCode(str, Enum):
    """Why a frame, or a part of one, could not be decoded."""

    BUFFER_UNDERFLOW = "buffer_underflow"
    """A value needs more bytes than the frame has left."""
    NEGATIVE_LENGTH = "negative_length"
    """A length below zero where null is not allowed."""
    LENGTH_OVERRUN = "length_overrun"
    """A string, byte or array length larger than the bytes that remain."""
    VARINT_TOO_LONG = "varint_too_long"
    """A variable-length integer with more bytes than its type can have."""
    INVALID_UTF8 = "invalid_utf8"
    """A text of MongoDB's that is not UTF-8. Kafka takes any string, with U+FFFD in place of what is not."""
    UNEXPECTED_NULL = "unexpected_null"
    """Null where this version of the field is not nullable."""
    TAG_ORDER = "tag_order"
    """Tagged fields that repeat or do not ascend (KIP-482)."""
    TAG_SIZE = "tag_size"
    """A tagged field whose content does not fill the size that it declares."""
    TRAILING_BYTES = "trailing_bytes"
    """The body ended before the frame did. Kafka's receivers take no notice of what is behind it, so that a message of
    Kafka's is ``ok`` all the same (see decoder.kafka.codec.messages)."""
    UNKNOWN_API = "unknown_api"
    """An api key that no known Kafka version has, or a MongoDB opcode that is not known."""
    UNKNOWN_VERSION = "unknown_version"
    """A version of a known api that no known Kafka version has."""
    MISSING_REQUEST = "missing_request"
    """A response whose request was never seen: api key and version are unknown."""
    FRAME_TRUNCATED = "frame_truncated"
    """The capture holds only the beginning of the frame."""
    CONNECTION_CLOSED = "connection_closed"
    """Client or server ended the connection in the middle of the frame. The capture lost nothing of it."""
    FRAME_TOO_LARGE = "frame_too_large"
    """The frame is larger than limits.MAX_FRAME_BYTES (MongoDB: limits.MAX_MONGODB_MESSAGE_BYTES)."""
    TOO_MANY_VALUES = "too_many_values"
    """The frame holds more values than limits.MAX_VALUES_PER_FRAME (MongoDB: limits.MAX_BSON_VALUES)."""
    TOO_MUCH_WORK = "too_much_work"
    """Reading the frame to its end takes more than limits.WORK_FLOOR and limits.WORK_PER_BYTE allow for its size on the
    wire: values, elements, tags, bytes inflated. What came before is decoded, the rest is neither read nor stored."""
    BODY_TOO_LARGE = "body_too_large"
    """The body as JSON text would be longer than limits.TEXT_PER_BYTE or limits.MAX_BODY_BYTES allow."""
    TOO_DEEP = "too_deep"
    """Structures nest deeper than limits.MAX_DEPTH (MongoDB: documents, limits.MAX_BSON_DEPTH)."""
    CREDENTIALS_REDACTED = "credentials_redacted"
    """The agent removed a credential from this frame before it was stored."""
    BATCH_CORRUPT = "batch_corrupt"
    """A record batch whose header contradicts itself or the bytes around it."""
    UNKNOWN_MAGIC = "unknown_magic"
    """A record batch with a magic other than 0, 1 or 2."""
    RECORD_COUNT = "record_count"
    """A record batch that holds more or fewer records than its header states."""
    RECORD_SIZE = "record_size"
    """A record whose content does not fill the size that it declares."""
    TOO_MANY_RECORDS = "too_many_records"
    """The frame holds more batches, records or record headers than decoder.limits allows; the rest is not read."""
    UNKNOWN_CODEC = "unknown_codec"
    """A record batch compressed in a way that its format does not have (5 to 7; zstd before v2); a MongoDB message by a
    compressor that is not known."""
    DECOMPRESSION_FAILED = "decompression_failed"
    """Compressed records, or a compressed MongoDB message, that are damaged, cut off, or followed by bytes that do not
    belong to them."""
    DECOMPRESSION_LIMIT = "decompression_limit"
    """Compressed bytes that become (or claim to become) more than the decompression limits in decoder.limits allow."""
    NESTED_COMPRESSION = "nested_compression"
    """A compressed message within a compressed message, which Kafka and MongoDB forbid."""
    UNCOMPRESSED_SIZE = "uncompressed_size"
    """A compressed MongoDB message that does not have the size that it declares (CVE-2025-14847)."""
    MESSAGE_LENGTH = "message_length"
    """A MongoDB messageLength that is not the number of bytes there."""
    UNKNOWN_FLAG = "unknown_flag"
    """An OP_MSG with a required flag bit (0 to 15) that is not known: its meaning may change all that follows."""
    UNKNOWN_SECTION = "unknown_section"
    """An OP_MSG section of an unknown kind, whose end is therefore unknown."""
    MISSING_SECTION = "missing_section"
    """An OP_MSG without a section of kind 0."""
    REPEATED_SECTION = "repeated_section"
    """An OP_MSG with a second section of kind 0, or a second one of kind 1 with the same identifier."""
    INVALID_DOCUMENT = "invalid_document"
    """Bytes that are not a BSON document."""
    CHECKSUM_MISMATCH = "checksum_mismatch"
    """A MongoDB message whose CRC-32C is not that of its bytes."""
    PAYLOAD_REMOVED = "payload_removed"
    """The payload policy overwrote the records of this batch before the frame was stored."""
    BODY_REMOVED = "body_removed"
    """The body did not decode where it was captured; it may have held payload, so it was not stored."""
    INTERNAL = "internal"
    """The decoder itself failed: a fault of Wirelake, please report the frame."""


class DecodeError(Exception):
    """Raised when bytes do not fit the schema.

    Args:
        code: the stable code.
        offset: byte offset in the frame (0-based, without Kafka's length prefix) where reading failed.
        detail: what was expected there, in words.

    Attributes:
        path: names and array indexes of the field that was being read; empty if none was.
    """

    def __init__(self, code: ErrorCode, offset: int, detail: str) -> None:
        super().__init__(f"{code.value} at byte {offset}: {detail}")
        self.code = code
        self.offset = offset
        self.detail = detail
        self.path: tuple[str | int, ...] = ()
