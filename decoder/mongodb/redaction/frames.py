"""Which bytes of a MongoDB message must not be stored: credentials always, documents by policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import crc32c

from decoder.errors import DecodeError, ErrorCode
from decoder.field_hash import FieldHash
from decoder.model import Frame, FrameFlags, PayloadPolicy
from decoder.mongodb.codec.compression import CHANGED, COMPRESSED_AT, NO_COMPRESSOR, STORED, stored
from decoder.mongodb.codec.documents import document_end, fields, walk
from decoder.mongodb.codec.messages import Opened, open_message
from decoder.mongodb.codec.rules import (
    BULK_COUNT,
    BULK_REPLY,
    BULK_STATUS,
    COMMAND,
    COMMAND_WITH_STATEMENTS,
    HELLO_REPLY,
    OLD_ERROR,
    OLD_ERROR_KEYS,
    OLD_REPLY,
    REPLY,
    STATEMENTS,
    STATUS,
    Rules,
)
from decoder.mongodb.codec.wire import CHECKSUM_BYTES, HEADER_BYTES, OP_MSG, Place
from decoder.mongodb.redaction.harmless import harmless_values, may_have_texts
from decoder.mongodb.redaction.payload import Masker
from decoder.mongodb.secrets import names_secret_collection
from decoder.mongodb.stream.peek import is_sensitive
from decoder.work import CALL_UNITS, METER, Budget

_MAY_BE_ANOTHERS = (
    FrameFlags.AFTER_GAP | FrameFlags.CORRELATION_MISMATCH | FrameFlags.CONFLICT | FrameFlags.ORPHAN_RESPONSE
).value
"""Where bytes were lost, or came with two contents, a response may have been paired with another's request."""

COPIED_IN_A_UNIT = 256
"""Bytes of a changed message whose copying takes a unit of work (see decoder.work)."""

_UNREAD = FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED | FrameFlags.TOO_MUCH_WORK
_MOST_KEYS = 1000
"""Top-level keys of a reply that are looked at to find what it is. A reply to hello has some twenty."""
_KEPT_OF_CREDENTIALS = frozenset({b"$db"})
_HELLO_FIELDS = frozenset({b"ismaster", b"isWritablePrimary"})
_REPLY_FIELDS = frozenset({b"ok", b"maxBsonObjectSize"})
"""One of them is in the reply to a command, which an OP_REPLY does not distinguish from a document that was found."""


def redact_frame(frame: Frame, field_hash: FieldHash | None = None) -> Frame:
    """See :func:`decoder.redact.redact`.

    Sizes stay, and the message decodes as before: values are overwritten where they are. A compressed message in
    which something had to be overwritten is stored uncompressed (see decoder.mongodb.codec.compression.STORED), so that
    its frame may be longer than ``size``, which stays. What does not decode is overwritten from there on, under every
    policy: where a credential begins in it is unknown.
    """
    if frame.flags & CHANGED:
        return frame  # it was cleaned before
    try:
        opened = open_message(frame.frame)
    except DecodeError:
        return _without_tail(frame, 0)
    if opened.outline is None or HEADER_BYTES <= opened.header.length < len(frame.frame):
        return _unopened(frame, opened)
    budget = opened.budget()
    cleaned = _Cleaning(frame, opened, field_hash, budget).run()
    METER.units += CALL_UNITS + budget.spent
    if budget.left < 0 and budget.code is ErrorCode.TOO_MUCH_WORK:
        return _without_tail(frame, COMPRESSED_AT, _UNREAD)
    if cleaned.flags == frame.flags and cleaned.data == opened.data:
        return frame
    data = cleaned.data
    METER.units += len(data) // COPIED_IN_A_UNIT
    if opened.compression is not None:
        data = frame.frame if data == opened.data else stored(frame.frame, opened.compression, data)
    return replace(frame, frame=data, flags=int(cleaned.flags))


def _unopened(frame: Frame, opened: Opened) -> Frame:
    """A message of an opcode that is not known, that cannot be decompressed, or that has more bytes than it states."""
    if opened.outline is not None:
        return _without_tail(frame, HEADER_BYTES)
    if opened.compression is not None:
        cut = _without_tail(frame, COMPRESSED_AT)
        if cut is frame or not opened.compression.compressor_id & STORED:
            return cut
        at = COMPRESSED_AT - 1  # what is changed here would be taken for what the agent stored
        return replace(cut, frame=cut.frame[:at] + bytes([NO_COMPRESSOR]) + cut.frame[at + 1 :])
    return _without_tail(frame, HEADER_BYTES, FrameFlags.PAYLOAD_REMOVED)


def _without_tail(
    frame: Frame, start: int, removed: FrameFlags = FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED
) -> Frame:
    if start >= len(frame.frame):
        return frame
    flags = frame.flags | removed
    return replace(frame, frame=frame.frame[:start] + bytes(len(frame.frame) - start), flags=int(flags))


@dataclass(frozen=True, slots=True)
class _Cleaned:
    data: bytes
    flags: int


class _Cleaning:
    """One message being cleaned."""

    def __init__(self, frame: Frame, opened: Opened, field_hash: FieldHash | None, budget: Budget) -> None:
        self._frame = frame
        self._opened = opened
        self._original = opened.data
        self._is_request = frame.direction == "request"
        self._is_credential = bool(frame.flags & FrameFlags.CREDENTIALS) or (self._is_request and is_sensitive(opened))
        self._policy = self._policy_of()
        self._data = bytearray(opened.data)
        self._budget = budget
        self._masker = Masker(self._data, opened.data, self._policy, self._budget, field_hash)
        self._flags = int(frame.flags)
        self._has_texts = self._policy == "full" and may_have_texts(opened.data)
        self._reply_at, self._is_reply = -1, False

    def run(self) -> _Cleaned:
        """The message as it may be stored, and its flags."""
        outline = self._opened.outline
        assert outline is not None  # noqa: S101 - who opened it has looked
        self._note_checksum()
        is_whole = all(self._clean_place(place) for place in outline.places)
        self._cut(max(outline.end, HEADER_BYTES), len(self._original))
        if not (is_whole and outline.error is None) and self._is_unframed:
            self._cut(HEADER_BYTES, len(self._original))
        if self._masker.has_changed:
            self._flags |= FrameFlags.PAYLOAD_REMOVED
            if self._policy == "none":
                self._flags |= FrameFlags.PAYLOAD_DROPPED
        if self._masker.has_secrets:
            self._flags |= FrameFlags.REDACTED
        if outline.checksum is not None and self._data != self._original and not self._is_cut:
            at = outline.checksum
            self._data[at : at + CHECKSUM_BYTES] = crc32c.crc32c(memoryview(self._data)[:at]).to_bytes(4, "little")
        return _Cleaned(bytes(self._data), self._flags)

    @property
    def _is_unframed(self) -> bool:
        """Whether the numbers and names of a body that does not decode may be anything: an old one's, sent whole.

        Nothing in it shows where its fields begin, and eight bytes of a text may be a cursor id.
        """
        is_cut_off = self._frame.flags & FrameFlags.TRUNCATED and len(self._frame.frame) < self._opened.header.length
        return self._opened.opcode != OP_MSG and not is_cut_off

    @property
    def _is_cut(self) -> bool:
        return bool(self._flags & FrameFlags.BODY_REMOVED)

    def _policy_of(self) -> PayloadPolicy:
        """Of what may be somebody's credentials less stays than the policy allows: no value, and no hash of one."""
        policy = self._frame.payload_policy
        if policy in ("full", "hash") and names_secret_collection(self._original):
            return "lengths"
        if policy == "full" and not self._is_request and self._frame.flags & _MAY_BE_ANOTHERS:
            return "lengths"
        return policy

    def _note_checksum(self) -> None:
        """The verdict on the message as it was on the wire."""
        outline = self._opened.outline
        if outline is None or "checksum" not in outline.fields or outline.checksum is None:
            return
        if self._opened.compression is None:
            is_valid = crc32c.crc32c(memoryview(self._original)[: outline.checksum]) == outline.fields["checksum"]
            self._flags |= FrameFlags.CRC_CHECKED | (0 if is_valid else FrameFlags.CRC_MISMATCH)

    def _clean_place(self, place: Place) -> bool:
        """All documents of a place; from one that is broken on, nothing of the message stays. Whether none is."""
        if place.is_list and self._is_erased() and not self._is_reply_alone(place):
            return self._erase_all(place)
        at = place.start
        try:
            while at < place.end:
                end = document_end(self._original, at, place.end)
                self._budget.take(at)
                self._clean_document(place, at, end)
                at = end
        except DecodeError:
            self._cut(at, len(self._original))
            return False
        return True

    def _erase_all(self, place: Place) -> bool:
        """One document in the place of all that are whole."""
        at = place.start
        try:
            while at < place.end:
                end = document_end(self._original, at, place.end)
                self._budget.take(at)
                for _ in walk(self._original, at, end, self._budget):
                    pass
                at = end
        except DecodeError:
            self._cut(at, len(self._original))
        if place.start < at:
            (self._masker.erase_secret if self._is_credential else self._masker.erase)(place.start, at)
        return at == place.end

    def _is_reply_alone(self, place: Place) -> bool:
        """Whether the only document is the reply to a handshake, which is no user's, or states how a login ended."""
        if place.role != "reply" or place.start == place.end:
            return False
        try:
            is_alone = document_end(self._original, place.start, place.end) == place.end
        except DecodeError:
            return False
        is_kept = self._is_status if self._is_credential else self._is_hello
        return is_alone and is_kept(place.start, place.end)

    def _is_erased(self) -> bool:
        return self._is_credential or self._policy == "none"

    def _clean_document(self, place: Place, start: int, end: int) -> None:
        if self._is_credential and not self._is_request and place.role in ("command", "reply"):
            self._masker.erase_reply(start, end, BULK_STATUS if self._is_bulk(start, end) else STATUS)
        elif self._is_credential:
            keep = _KEPT_OF_CREDENTIALS if place.role == "command" else frozenset[bytes]()
            self._masker.erase_command(start, end, keep)
        elif self._policy == "none" and place.role in ("payload", "internal"):
            for _ in walk(self._original, start, end, self._budget):
                pass
            self._masker.erase(start, end)
        elif place.role == "internal" and self._opened.opcode == OP_MSG:
            self._erase_token(start, end)
        elif self._policy == "full" and self._is_harmless(start, end):
            return
        elif self._is_request:
            is_command = place.role == "command"
            if is_command:
                rules = COMMAND if self._policy == "none" else COMMAND_WITH_STATEMENTS
            else:
                rules = STATEMENTS.get(place.into.get("identifier", ""), {})
            self._masker.document(start, end, rules, is_command=is_command)
        else:
            is_reply = place.role == "command" or self._has_reply(place)
            self._masker.document(start, end, self._reply_rules(place, start, end), is_reply=is_reply)

    def _has_reply(self, place: Place) -> bool:
        """Whether one of the documents is the reply to a command: then none of them is what a query has found."""
        if self._reply_at != place.start:
            self._reply_at, self._is_reply = place.start, any(map(self._is_of_command, self._documents(place)))
        return self._is_reply

    def _documents(self, place: Place) -> Iterator[tuple[int, int]]:
        at = place.start
        with suppress(DecodeError):
            while at < place.end:
                end = document_end(self._original, at, place.end)
                self._budget.take(at)
                yield at, end
                at = end

    def _is_of_command(self, document: tuple[int, int]) -> bool:
        return not self._keys(*document).isdisjoint(_REPLY_FIELDS)

    def _erase_token(self, start: int, end: int) -> None:
        """A section of kind 2: with its signature a proxy speaks for any user."""
        for _ in walk(self._original, start, end, self._budget):
            pass
        self._masker.erase_secret(start, end)

    def _is_harmless(self, start: int, end: int) -> bool:
        budget = self._budget
        count = harmless_values(self._original, start, end, budget.left, with_texts=self._has_texts)
        budget.spent += count or 0
        return count is not None

    def _reply_rules(self, place: Place, start: int, end: int) -> Rules:
        if place.role == "command":
            return BULK_REPLY if self._is_bulk(start, end) else REPLY
        if place.role != "reply":
            return {}
        if self._is_hello(start, end):
            return HELLO_REPLY
        return OLD_ERROR if self._keys(start, end) >= OLD_ERROR_KEYS else OLD_REPLY

    def _is_hello(self, start: int, end: int) -> bool:
        """Whether a document is the reply to hello, which an OP_REPLY does not name."""
        keys = self._keys(start, end)
        return b"maxBsonObjectSize" in keys and not keys.isdisjoint(_HELLO_FIELDS)

    def _is_status(self, start: int, end: int) -> bool:
        return b"ok" in self._keys(start, end)

    def _is_bulk(self, start: int, end: int) -> bool:
        """Whether a document is the reply to bulkWrite, which counts its errors."""
        return self._original.find(BULK_COUNT, start, end) >= 0 and BULK_COUNT in self._keys(start, end)

    def _keys(self, start: int, end: int) -> set[bytes]:
        found = islice(fields(self._original, start, end), _MOST_KEYS)
        return {self._original[e.key_start : e.key_end] for e in found}

    def _cut(self, start: int, end: int) -> None:
        """Overwrite what does not decode."""
        if start >= end:
            return
        self._data[start:end] = bytes(end - start)
        self._flags |= FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED
