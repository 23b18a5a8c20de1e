"""Reads many messages at once, straight from bytes into JSON text, compiled by numba: what the plain reader gives.

It gives back what is rare (opcodes that drivers of today do not send, checksums, and what
:mod:`decoder.mongodb.kernel.documents` names) and whatever is not as it should be. So nothing that is written here has
an error, and one place knows them: :mod:`decoder.mongodb.codec.messages`.

Importing this module compiles it (some ten seconds), or loads what an earlier process compiled from numba's cache.
"""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
# ruff: noqa: C901, PLR0912  one loop over the messages, which calls little
from __future__ import annotations

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FAIL, copy, end_to_end, put_int, put_string, put_text
from decoder.model import FrameFlags
from decoder.mongodb.codec.compression import COMPRESSORS
from decoder.mongodb.codec.documents import DOCUMENT, STRING
from decoder.mongodb.codec.summary import FIRST_DOCUMENT
from decoder.mongodb.codec.wire import (
    CHECKSUM_PRESENT,
    HEADER_BYTES,
    OP_COMPRESSED,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OPCODES,
)
from decoder.mongodb.kernel.documents import PLACES, REALS, document_end, is_same, number, put_document, zero
from decoder.mongodb.kernel.fronts import (
    APPLICATION,
    CLIENT,
    HANDSHAKE,
    INTS_IN,
    NAME,
    REPLY_DOCUMENTS,
    command_end,
    find,
    is_one_of,
    query_place,
)

GIVEN_BACK = 0
"""Outcome of a message: the plain reader must read it; its columns are empty."""
READ, HAS_NAME, HAS_CLIENT_ID = 1, 2, 4
"""Outcome of any other: these bits, by what it has."""

HEADER, BODY, API_NAME, CLIENT_ID = range(4)
"""Columns of text that the kernel writes."""
COLUMNS = 4
HEADER_ROOM = 256
"""Bytes that the text of a header may need, with what put_text writes too much."""
MOST_BYTES = 1 << 20
"""Of a message; a larger one is given back."""

_LEFT_TO_PLAIN = int(
    FrameFlags.TRUNCATED | FrameFlags.REDACTED | FrameFlags.CREDENTIALS | FrameFlags.BODY_REMOVED
)  # fmt: skip
"""Flags of frames whose status is not ``ok``, whatever their bytes."""

_OPCODES = (OP_MSG, OP_QUERY, OP_REPLY)
"""Opcodes that are read; the texts about them are in this order."""
_TEXTS = [
    '{"messageLength":', ',"requestID":', ',"responseTo":', '{"flagBits":', ',"sections":[', '{"kind":0,"document":',
    '{"kind":1,"identifier":', ',"documents":[', '{"flags":', ',"fullCollectionName":', ',"numberToSkip":',
    ',"numberToReturn":', ',"query":', ',"returnFieldsSelector":', '{"responseFlags":', ',"cursorID":',
    ',"startingFrom":', ',"numberReturned":',
    *(f',"opCode":{code},"opName":"{OPCODES[code]}"' for code in (*_OPCODES, OP_COMPRESSED)),
    *(f',"originalOpcode":{code},"originalOpName":"{OPCODES[code]}","uncompressedSize":' for code in _OPCODES),
    *(f',"compressor":"{name}"' for _, name in sorted(COMPRESSORS.items())),
    *(OPCODES[code] for code in _OPCODES),
]  # fmt: skip
(
    _MESSAGE_LENGTH, _REQUEST_ID, _RESPONSE_TO, _FLAG_BITS, _SECTIONS, _KIND_0, _KIND_1, _DOCUMENTS, _FLAGS, _NAMESPACE,
    _TO_SKIP, _TO_RETURN, _QUERY, _SELECTOR, _RESPONSE_FLAGS, _CURSOR, _STARTING_FROM, _RETURNED, _OPCODE,
) = range(19)  # fmt: skip
_COMPRESSED = _OPCODE + len(_OPCODES)
_INSIDE = _COMPRESSED + 1
_COMPRESSOR = _INSIDE + len(_OPCODES)
_OPCODE_NAME = _COMPRESSOR + len(COMPRESSORS)
_TEXT, _TEXT_AT = end_to_end(_TEXTS)


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, inline=True)
def _put(out, at, index):
    return put_text(out, at, _TEXT, _TEXT_AT[index], _TEXT_AT[index + 1])


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, BYTES_IN, types.int64, types.int64)
def _put_number(out, at, name, data, start, size):
    return put_int(out, _put(out, at, name), number(data, start, size))


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, types.int64, types.int64)
def _put_header(out, at, data, start, opcode, length, compressor):
    """``opcode``: its place in _OPCODES; see decoder.mongodb.codec.messages.header_json."""
    at = put_int(out, _put(out, at, _MESSAGE_LENGTH), length)
    at = _put_number(out, at, _REQUEST_ID, data, start + 4, 4)
    at = _put_number(out, at, _RESPONSE_TO, data, start + 8, 4)
    if compressor < 0:
        at = _put(out, at, _OPCODE + opcode)
    else:
        at = _put(out, _put(out, at, _COMPRESSED), _INSIDE + opcode)
        at = _put(out, put_int(out, at, number(data, start, 4) - HEADER_BYTES), _COMPRESSOR + compressor)
    out[at] = 125
    return at + 1


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, PLACES, REALS, PLACES)
def _put_documents(out, at, data, start, end, stack, reals, keys):
    """Whole documents, one after the other, as the elements of an array that was begun; negative: given back."""
    pos = start
    while pos < end:
        stop = document_end(data, pos, end)
        if stop < 0:
            return FAIL
        if pos > start:
            out[at] = 44
            at += 1
        at = put_document(out, at, data, pos, stop, stack, reals, keys)
        if at < 0:
            return FAIL
        pos = stop
    out[at] = 93
    return at + 1


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, types.int64, PLACES, REALS, PLACES)
def _put_message(out, at, data, start, end, stop, stack, reals, keys):
    """The body of the OP_MSG ``data[start:stop]`` whose first document ends at ``end``, see command_end."""
    at = put_int(out, _put(out, at, _FLAG_BITS), number(data, start + HEADER_BYTES, 4) & 0xFFFFFFFF)
    at = _put(out, _put(out, at, _SECTIONS), _KIND_0)
    at = put_document(out, at, data, start + FIRST_DOCUMENT, end, stack, reals, keys)
    if at < 0:
        return FAIL
    out[at] = 125
    at += 1
    first = first_end = np.int64(FAIL)
    pos = end
    while pos < stop:
        name, section_end = pos + 5, pos + 1 + number(data, pos + 1, 4)
        name_end = zero(data, name, section_end)
        if name_end == section_end:
            return FAIL
        if pos > end and (first != end + 5 or is_same(data, name, name_end, data, first, first_end)):
            return FAIL  # the third, or one that is repeated
        first, first_end = name, name_end
        out[at] = 44
        at = put_string(out, _put(out, at + 1, _KIND_1), data, name, name_end, False)
        if at < 0:
            return FAIL
        at = _put_documents(out, _put(out, at, _DOCUMENTS), data, name_end + 1, section_end, stack, reals, keys)
        if at < 0:
            return FAIL
        out[at] = 125
        at += 1
        pos = section_end
    out[at] = 93
    out[at + 1] = 125
    return at + 2


@compiled(
    types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, types.int64, types.int64, PLACES, REALS,
    PLACES,
)  # fmt: skip
def _put_query(out, at, data, start, begin, end, stop, stack, reals, keys):
    """The body of the OP_QUERY ``data[start:stop]`` whose query is ``data[begin:end]``."""
    at = _put_number(out, at, _FLAGS, data, start + HEADER_BYTES, 4)
    at = put_string(out, _put(out, at, _NAMESPACE), data, start + HEADER_BYTES + 4, begin - 9, False)
    if at < 0:
        return FAIL
    at = _put_number(out, at, _TO_SKIP, data, begin - 8, 4)
    at = _put_number(out, at, _TO_RETURN, data, begin - 4, 4)
    at = put_document(out, _put(out, at, _QUERY), data, begin, end, stack, reals, keys)
    if at < 0:
        return FAIL
    if end < stop:
        at = put_document(out, _put(out, at, _SELECTOR), data, end, stop, stack, reals, keys)
        if at < 0:
            return FAIL
    out[at] = 125
    return at + 1


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, PLACES, REALS, PLACES)
def _put_reply(out, at, data, start, stop, stack, reals, keys):
    """The body of the OP_REPLY ``data[start:stop]``."""
    at = _put_number(out, at, _RESPONSE_FLAGS, data, start + HEADER_BYTES, 4)
    at = _put_number(out, at, _CURSOR, data, start + HEADER_BYTES + 4, 8)
    at = _put_number(out, at, _STARTING_FROM, data, start + HEADER_BYTES + 12, 4)
    at = _put(out, _put_number(out, at, _RETURNED, data, start + HEADER_BYTES + 16, 4), _DOCUMENTS)
    at = _put_documents(out, at, data, start + REPLY_DOCUMENTS, stop, stack, reals, keys)
    if at < 0:
        return FAIL
    out[at] = 125
    return at + 1


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def _application(data, start, end):
    """Where the text begins in which a client names itself in its handshake; negative if it does not."""
    if not is_one_of(data, start + 5, zero(data, start + 5, end), HANDSHAKE):
        return FAIL
    client = find(data, start, end, CLIENT, DOCUMENT)
    if client < 0:
        return FAIL
    application = find(data, client, client + number(data, client, 4), APPLICATION, DOCUMENT)
    if application < 0:
        return FAIL
    return find(data, application, application + number(data, application, 4), NAME, STRING)


@compiled(
    types.void, BYTES_IN, INTS_IN, BYTES_IN, INTS_IN, INTS_IN, INTS_IN, BYTES_OUT, BYTES_OUT, BYTES_OUT, BYTES_OUT,
    types.int64[:, ::1], BYTES_OUT, PLACES, REALS, PLACES, is_entry=True,
)  # fmt: skip
def read_messages(data, starts, is_response, flags, lengths, compressors, header, body, api_name, client_id, ends,
                  outcomes, stack, reals, keys):  # fmt: skip
    """Read messages.

    Args:
        data, starts: the messages, end to end, decompressed.
        is_response, flags: as for Codec.decode.
        lengths: of each on the wire.
        compressors: by which each came; negative: by none.
        header, body, api_name, client_id: room for the texts, see :func:`decoder.mongodb.batch.read_batch`.
        ends: where the texts of each message end.
        outcomes: see READ.
        stack, reals, keys: see put_document.
    """
    h_at = b_at = n_at = c_at = np.int64(0)
    for index in range(outcomes.shape[0]):
        outcomes[index] = GIVEN_BACK
        ends[index, HEADER], ends[index, BODY] = h_at, b_at
        ends[index, API_NAME], ends[index, CLIENT_ID] = n_at, c_at
        start, stop = starts[index], starts[index + 1]
        size = stop - start
        if flags[index] & _LEFT_TO_PLAIN or not HEADER_BYTES + 4 <= size <= MOST_BYTES:
            continue
        if number(data, start, 4) != size:
            continue
        code = number(data, start + 12, 4)
        opcode = 0
        begin = end = np.int64(FAIL)
        at = np.int64(FAIL)
        if code == OP_MSG and not data[start + HEADER_BYTES] & CHECKSUM_PRESENT:
            begin, end = start + FIRST_DOCUMENT, command_end(data, start, stop)
            if end >= 0:
                at = _put_message(body, b_at, data, start, end, stop, stack, reals, keys)
        elif code == OP_QUERY:
            opcode = 1
            begin, end = query_place(data, start, stop)
            if end >= 0:
                at = _put_query(body, b_at, data, start, begin, end, stop, stack, reals, keys)
        elif code == OP_REPLY and size >= REPLY_DOCUMENTS:
            opcode = 2
            at = _put_reply(body, b_at, data, start, stop, stack, reals, keys)
        if at < 0:
            continue
        b_at = at
        h_at = _put_header(header, h_at, data, start, opcode, lengths[index], compressors[index])
        outcome = READ
        if opcode:
            n_at = _put(api_name, n_at, _OPCODE_NAME + opcode)
            outcome |= HAS_NAME
        elif not is_response[index] and data[begin + 4]:
            n_at = copy(api_name, n_at, data, begin + 5, zero(data, begin + 5, end))
            outcome |= HAS_NAME
        if not is_response[index] and begin >= 0 and data[begin + 4]:
            text = _application(data, begin, end)
            if text >= 0:
                c_at = copy(client_id, c_at, data, text + 4, text + 3 + number(data, text, 4))
                outcome |= HAS_CLIENT_ID
        outcomes[index] = outcome
        ends[index, HEADER], ends[index, BODY] = h_at, b_at
        ends[index, API_NAME], ends[index, CLIENT_ID] = n_at, c_at
