"""The reading of pasted text that makes a message, of those that its form allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decoder.codec import Codec
from decoder.explain.paste import Paste, PasteError
from decoder.protocol import Context, MissingContextError, Pasted, WireProtocol
from decoder.protocols import protocols

_DEFAULT = "kafka"
"""What bytes are taken for that can be any protocol's."""
_UNKNOWN = ("unknown_api", "unknown_version", "malformed", "orphan_response")
_Rank = tuple[bool, bool, bool, int]


def choose_reading(
    readings: Sequence[Paste],
    context: Context,
    codec: Codec,
    *,
    protocol: str | None = None,
    is_direction_given: bool = False,
) -> tuple[WireProtocol, Pasted]:
    """Choose the protocol and message of pasted text.

    The likeliest reading is taken, unless it makes no message and another one makes a whole one.

    Args:
        readings: see :func:`decoder.explain.paste.readings`.
        context: what the person gave.
        codec: to try what each reading may be.
        protocol: its name, if the person gave it.
        is_direction_given: whether the person named the direction.

    Raises:
        MissingContextError: more must be known.
        PasteError: the text shows words of several bytes, and no order of their bytes makes a message.
    """
    first = readings[0]
    ranks = [_rank(one, context, codec, protocol, is_direction_given=is_direction_given) for one in readings]
    best = max(range(len(readings)), key=lambda index: (ranks[index], -index))
    is_known, is_whole, *_ = ranks[best]
    chosen = readings[best] if is_whole or (is_known and first.word > 1) else first
    if first.word > 1 and not is_known and not _may_lack_context(context):
        raise PasteError(f"the dump shows words of {_number(first.word)} bytes; use hexdump -C")
    spoken, found = _read(chosen, context, codec, protocol, is_direction_given=is_direction_given)
    return spoken, replace(found, base=chosen.skipped + found.base, remarks=(*_remarks(chosen), *found.remarks))


def _read(
    paste: Paste, context: Context, codec: Codec, protocol: str | None, *, is_direction_given: bool
) -> tuple[WireProtocol, Pasted]:
    known = protocols()
    reads = known.get(protocol or "") or next(
        (one for one in known.values() if context.api_key is None and one.may_be(paste.data)), known[_DEFAULT]
    )
    return reads, reads.paste(paste.data, context, codec, is_direction_given=is_direction_given)


def _rank(
    paste: Paste, context: Context, codec: Codec, protocol: str | None, *, is_direction_given: bool
) -> _Rank:  # fmt: skip
    """Whether some bytes are a message of a known kind, a whole one, one without remarks, and how far it is read."""
    try:
        reads, found = _read(paste, context, codec, protocol, is_direction_given=is_direction_given)
    except MissingContextError:
        return False, False, False, 0
    message = codec.decode(found.frame, protocol=reads.name, **found.context._asdict(), strict=True)
    is_whole = message.status == "ok" and bool(found.frame)
    reach = len(found.frame) if message.error_offset is None else message.error_offset
    return message.status not in _UNKNOWN, is_whole, not found.remarks, reach


def _may_lack_context(context: Context) -> bool:
    return context.direction == "response" and (context.api_key is None or context.api_version is None)


def _number(size: int) -> str:
    return {2: "two", 4: "four", 8: "eight"}.get(size, str(size))


def _remarks(paste: Paste) -> tuple[str, ...]:
    remarks = []
    if paste.word > 1:
        remarks.append(
            f"the text shows little-endian words of {_number(paste.word)} bytes; they were put back into the order "
            "of the wire. `hexdump -C` shows bytes in this order"
        )
    if paste.skipped:
        remarks.append(f"the first {paste.skipped} bytes are headers of the packet and were skipped")
    return tuple(remarks)
