"""The types that travel along the arrows: bytes → Segment → RawFrame → Frame → Message → OffsetEvent.

All are frozen: a step takes values and returns new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Literal, NamedTuple

Direction = Literal["request", "response"]
"""``request``: client to server; ``response``: server to client."""

Status = Literal[
    "ok", "partial", "unknown_api", "unknown_version", "orphan_response", "malformed", "truncated", "redacted"
]
"""Outcome of decoding one frame; the values are a contract of the ``decode_status`` column."""

PayloadPolicy = Literal["lengths", "full", "hash", "none"]
"""What of record keys, values and headers may be stored; applied by the agent before the first write.

``lengths``: zeros in their place, so that sizes, offsets and batch headers stay; ``full``: all of it; ``hash``: a
keyed hash in the place of each (:mod:`decoder.field_hash`); ``none``: not even the batch headers, only their size.
Credentials are stored under none of these.
"""


class FrameFlags(IntFlag):
    """Bits of the landing column ``flags``."""

    TRUNCATED = 1
    """Only the beginning of the frame was captured; ``size`` is the full size, ``frame`` is shorter."""
    REDACTED = 2
    """A credential was overwritten; ``frame`` is not what was on the wire."""
    AFTER_GAP = 4
    """The first frame after bytes were lost in this direction."""
    CRC_CHECKED = 8
    """The checksums in this frame (of record batches; of a MongoDB message) were verified before the payload policy was
    applied."""
    CRC_MISMATCH = 16
    """At least one of them did not match (only together with CRC_CHECKED)."""
    PAYLOAD_REMOVED = 32
    """The payload policy changed bytes behind a record batch header: checksums no longer match (but those that the
    policy ``hash`` computed again)."""
    NO_RESPONSE_EXPECTED = 64
    """A request that the server does not answer (Produce with acks=0, OP_MSG with moreToCome, OP_INSERT …)."""
    UNANSWERED = 128
    """The connection closed before the response came."""
    ORPHAN_RESPONSE = 256
    """A response whose request was not seen."""
    CORRELATION_MISMATCH = 512
    """The response's correlation id is not that of the request next in line; paired by id, or not at all."""
    SASL_TOKEN = 1024
    """A raw SASL token (SaslHandshake v0): no Kafka header."""
    CONFLICT = 2048
    """Bytes of this frame came twice with different content; the first are kept."""
    PAYLOAD_DROPPED = 4096
    """The payload policy overwrote the records with their batch headers: nothing but their size is known."""
    BODY_REMOVED = 8192
    """The body did not decode where it was captured, so payload could not be distinguished from the
    rest: it was overwritten."""
    CREDENTIALS = 16384
    """A response to a command with credentials (MongoDB's saslStart …): of its body only the status may be stored."""
    FOLLOWING_RESPONSE = 32768
    """A further response where a request has several (MongoDB's exhaust): ``reply_to`` is the response before it. It
    has an exchange of its own, without a request."""
    SETS_MEASURED = 65536
    """The payload policy overwrote compressed messages of formats 0 and 1 (message sets). In the last bytes of the
    value of each is what only its content showed, a ``decoder.kafka.records.message_sets.Extent``. The agent sets
    this flag only where all records of the frame were overwritten, so that nothing a peer sent is taken for an
    extent."""
    TOO_MUCH_WORK = 131072
    """Reading it to its end takes more work than a frame of its size may cause: the rest was overwritten unread (with
    BODY_REMOVED)."""
    TIME_CLAMPED = 262144
    """``ts`` or ``ts_end`` is at the end of the span that times may have (:data:`MIN_TS_US` to :data:`MAX_TS_US`):
    the capture gave a time outside of it, or none. The bytes are none the worse for it."""
    CLOSED_BY_CLIENT = 524288
    """The client ended the connection (FIN or RST) in the middle of this frame: the rest was never sent, or never
    wanted. The frame is TRUNCATED as well, and the capture lost none of it."""
    CLOSED_BY_SERVER = 1048576
    """The same, by the server. On an UNANSWERED request: the server closed the connection before it sent a byte."""


SPEAKS = "speaks "
"""How the ``method`` of a gap begins that is no loss: the server answers in the protocol named behind it."""

MIDWAY = "midway "
"""How the ``method`` of a gap begins that is no loss: the connection was joined midway, and these bytes belong to
messages, or answer requests, that were sent before the capture began. Behind it how the first frame was found."""

CONNECTION = "connection"
"""The ``method`` of a gap that is no loss: its ``life`` states what became of a connection."""

NO_LOSS = (SPEAKS, MIDWAY, CONNECTION)

CLOSED = FrameFlags.CLOSED_BY_CLIENT | FrameFlags.CLOSED_BY_SERVER
"""Somebody ended the connection in the middle of the frame."""

MIN_TS_US = 0
MAX_TS_US = 7_258_118_399_999_999
"""The span of capture times, µs since the epoch: 1970 to 2199. A file may hold any year (pcapng has 64 bits, and a
resolution of its own), but neither calendars nor arithmetic in nanoseconds continue for so long: what is outside is
taken for the end that it is behind, and flagged TIME_CLAMPED. The begin itself is what files have that hold no
time."""


def clamped_time(ts: int) -> int:
    """A capture time (µs since the epoch), or the end of the span of times that it is behind."""
    return min(max(ts, MIN_TS_US), MAX_TS_US)


def time_flags(ts: int, ts_end: int) -> int:
    """TIME_CLAMPED if one of a frame's times is no time that the capture gave; else 0."""
    is_within = MIN_TS_US < ts < MAX_TS_US and MIN_TS_US < ts_end < MAX_TS_US
    return 0 if is_within else int(FrameFlags.TIME_CLAMPED)


@dataclass(frozen=True, slots=True)
class RawFrame:
    """One length-delimited message as it was in the byte stream of one direction.

    Attributes:
        data: the frame's bytes without Kafka's length prefix; shorter than ``size`` only if truncated.
        size: the size in bytes that the length prefix declared.
        ts: capture time of the first byte, µs since the epoch, UTC.
        ts_end: capture time of the last byte, µs.
        after_gap: bytes were lost in this direction immediately before this frame.
        disputed: some of its bytes came twice, with different content.
    """

    data: bytes
    size: int
    ts: int
    ts_end: int
    after_gap: bool = False
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One row of the landing zone. Times are µs since the epoch, UTC. See pipeline.tables for each column."""

    agent_id: str
    connection_id: str
    exchange_id: str | None
    seq: int
    direction: Direction
    ts: int
    ts_end: int
    client_ip: str
    client_port: int
    server_ip: str
    server_port: int
    protocol: str
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    reply_to: int | None
    size: int
    frame: bytes
    flags: int
    flow_id: str
    payload_policy: PayloadPolicy
    idle_us: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of one direction that are in no frame (a row of ``bronze.gaps``).

    Of each direction of a connection, the bytes of all frames (of Kafka each with its 4-byte length prefix; of a
    truncated one those that it holds) and of all gaps together are those of the stream, from the first to the last that
    any packet spoke of.

    Attributes:
        seq: ordinal in its direction of the first frame found after the loss.
        bytes_lost: bytes missing from the stream, the rest of a frame cut off by the loss, and bytes skipped while
            looking for the next frame.
        method: how the stream was found again: ``segment_start``, ``scan``, ``length``, or ``none``. With
            :data:`MIDWAY` before it where the bytes precede all frames of a connection that the capture joined midway.
            Or :data:`SPEAKS` and the name of another protocol: the server answers in that one, so that its bytes are in
            no frame. Or :data:`CONNECTION`.
        confidence: 0 to 1.
        life: of a row with the method :data:`CONNECTION` what became of the connection, as JSON; else None.
    """

    agent_id: str
    connection_id: str
    seq: int
    direction: Direction
    ts: int
    bytes_lost: int
    method: str
    confidence: float
    life: str | None = None

    @property
    def is_loss(self) -> bool:
        """Whether the capture lacks bytes that were sent while it continued."""
        return not self.method.startswith(NO_LOSS)


@dataclass(frozen=True, slots=True)
class Message:
    """What decoding one frame gave.

    Attributes:
        header: Kafka's JSON of the request or response header; empty if it could not be read.
        body: Kafka's JSON of the body (see ``Codec.decode``); what was read before an error stays.
        status: see :data:`Status`.
        error_code: a value of ``decoder.errors.ErrorCode``, None if ``ok``; but for ``trailing_bytes``, which a message
            may have that is ``ok``.
        error_offset: byte offset in the frame of the error (of the first trailing byte), None without one.
        error_detail: what was expected there, in words.
        error_path: the field that was being read there (``topics/0/name``), None if no field was.
        api_key, api_version, api_name: as decoded, or as given by the caller.
        client_id: of a request.
        record_batches: summaries of all record batches of the frame, each with ``topic``/``topicId`` and
            ``partition`` beside the fields of ``recordBatches`` in the body.
        embedded: the messages that bytes fields of the body carry (``decoder.kafka.codec.embedded.embedded_messages``).
    """

    header: dict[str, Any]
    body: dict[str, Any]
    status: Status
    error_code: str | None = None
    error_offset: int | None = None
    error_detail: str | None = None
    api_key: int | None = None
    api_version: int | None = None
    api_name: str | None = None
    client_id: str | None = None
    record_batches: list[dict[str, Any]] = field(default_factory=list)
    embedded: list[dict[str, Any]] = field(default_factory=list)
    error_path: str | None = None


class OffsetEvent(NamedTuple):
    """What one exchange states about one partition (a row of ``silver.offset_events`` without the exchange's columns).

    Offsets are inclusive positions in the log unless noted otherwise; None where the exchange does not state them.

    Attributes:
        ordinal: position of this event among those of the same exchange, partition and kind, from 0.
        kind: ``produced``, ``fetched``, ``committed``, ``commit_rejected``, ``fetched_commit``, ``listed``,
            ``txn_committed``, ``txn_commit_rejected``, ``produce_rejected``, ``fetch_rejected``, ``fetch_forgotten``.
        offset: produced: base offset of the first record; fetched: the fetch offset asked for; commits: the committed
            offset (the next one to read); listed: the offset that was found.
        next_offset: produced and fetched: one past the last record of the batches seen (exclusive end).
        records: number of records in the batches seen, control batches not counted.
        high_watermark, last_stable_offset, log_start_offset: as in the response; -1 becomes None.
        producer_id, producer_epoch, transactional_id: of the transaction or producer, if any.
        session_id, session_epoch: of a Fetch in a fetch session (KIP-227); the epoch is 0 where the session begins.
    """

    topic: str | None
    topic_id: str | None
    partition: int
    kind: str
    ordinal: int
    offset: int | None = None
    next_offset: int | None = None
    records: int | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    leader_epoch: int | None = None
    group_id: str | None = None
    member_id: str | None = None
    generation: int | None = None
    client_id: str | None = None
    isolation_level: str | None = None
    error_code: int | None = None
    error_name: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    transactional_id: str | None = None
    list_timestamp: int | None = None
    metadata: str | None = None
    session_id: int | None = None
    session_epoch: int | None = None
