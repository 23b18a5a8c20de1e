"""The fronts of many messages, as :mod:`decoder.mongodb.codec.summary` gives that of one, compiled by numba.

What is rare, or not as it should be, is given back: legacy opcodes but those of the first exchange of a connection,
commands in a wrapper, values of rare types beside the ones that are looked for.
"""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
# ruff: noqa: C901  one loop over the bytes: calls cost more than what they do
from __future__ import annotations

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, FAIL, PAIR, end_to_end
from decoder.mongodb.codec.documents import DOCUMENT, MIN_DOCUMENT_BYTES, STRING
from decoder.mongodb.codec.messages import HANDSHAKES
from decoder.mongodb.codec.rules import COMMANDS_ON_A_COLLECTION
from decoder.mongodb.codec.summary import FIRST_DOCUMENT, KNOWN_FLAGS, WRAPPERS
from decoder.mongodb.codec.wire import (
    CHECKSUM_PRESENT,
    HEADER_BYTES,
    OP_COMPRESSED,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    REQUIRED_FLAGS,
)
from decoder.mongodb.kernel.documents import document_end, is_same, number, value_end, zero

REPLY_DOCUMENTS = HEADER_BYTES + 20
"""Where the documents of an OP_REPLY begin."""

(
    READ, LENGTH, REQUEST_ID, RESPONSE_TO, WIRE_OPCODE, OPCODE, FLAGS, COMMAND, COMMAND_END, DATABASE, DATABASE_END,
    COLLECTION, COLLECTION_END,
) = range(13)  # fmt: skip
"""Columns of the rows that the kernel fills: whether the message was read (else it is given back), what
decoder.mongodb.codec.summary.Summary holds, and where its texts begin and end; -1 is none."""
COLUMNS = COLLECTION_END + 1

_GROUPS = (
    HANDSHAKES, ("client",), ("application",), ("name",), ("$db",), ("collection",), ("getMore",), (".$cmd",),
    tuple(name.decode() for name in WRAPPERS), tuple(sorted(name.decode() for name in COMMANDS_ON_A_COLLECTION)),
)  # fmt: skip
HANDSHAKE, CLIENT, APPLICATION, NAME, _DB, _COLLECTION, _GET_MORE, _CMD, _WRAPPER, _ON_A_COLLECTION = range(10)
"""Groups of names to look for, see :func:`is_one_of`."""
_FIRST_NAME = np.cumsum([0, *map(len, _GROUPS)])
_NAMES, _NAME_AT = end_to_end([name for group in _GROUPS for name in group])

INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_ROWS = types.int64[:, ::1]


@compiled(types.boolean, BYTES_IN, types.int64, types.int64, types.int64)
def is_one_of(data, start, end, group):
    """Whether ``data[start:end]`` is a name of this group."""
    for index in range(_FIRST_NAME[group], _FIRST_NAME[group + 1]):
        if is_same(data, start, end, _NAMES, _NAME_AT[index], _NAME_AT[index + 1]):
            return True
    return False


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64, types.int64)
def find(data, start, end, name, kind):
    """Where the value of this name begins in a document; negative if there is none of this type."""
    at, last = start + 4, end - 1
    while data[at]:
        key_end = zero(data, at + 1, last)
        if key_end == last:
            return FAIL
        if is_one_of(data, at + 1, key_end, name):
            return key_end + 1 if data[at] == kind else FAIL
        at = value_end(data, data[at], key_end + 1, last)
        if at < 0:
            return FAIL
    return FAIL


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def command_end(data, start, stop):
    """Where the command's document ends in an ordinary OP_MSG, see decoder.mongodb.codec.summary.command_place."""
    if stop - start < FIRST_DOCUMENT + MIN_DOCUMENT_BYTES or data[start + FIRST_DOCUMENT - 1]:
        return FAIL
    flags = number(data, start + HEADER_BYTES, 4)
    if flags & REQUIRED_FLAGS > KNOWN_FLAGS:
        return FAIL
    last = stop - 4 * (flags & CHECKSUM_PRESENT)
    end = document_end(data, start + FIRST_DOCUMENT, last)
    if end < 0:
        return FAIL
    at = end
    while at < last:
        if data[at] != 1 or last - at < 1 + MIN_DOCUMENT_BYTES:
            return FAIL
        size = number(data, at + 1, 4)
        if size < MIN_DOCUMENT_BYTES:
            return FAIL
        at += 1 + size
    return end if at == last else FAIL


@compiled(PAIR, BYTES_IN, types.int64, types.int64)
def query_place(data, start, stop):
    """Where the query's document begins and ends in an OP_QUERY; negative if it is not there."""
    begin = zero(data, start + HEADER_BYTES + 4, stop) + 9
    return begin, document_end(data, begin, stop)


@compiled(types.boolean, BYTES_IN, types.int64, types.int64, _ROWS, types.int64)
def _read_command(data, start, end, rows, row):
    """Note the places of command, database and collection, as decoder.mongodb.codec.summary finds them."""
    name = name_end = named = database = collection = np.int64(FAIL)
    at, last = start + 4, end - 1
    while data[at]:
        kind, key = data[at], at + 1
        key_end = zero(data, key, last)
        if key_end == last:
            return False
        at = value_end(data, kind, key_end + 1, last)
        if at < 0:
            return False
        place = key_end + 1 if kind == STRING else np.int64(FAIL)
        if name < 0:
            name, name_end = key, key_end
        if is_same(data, key, key_end, data, name, name_end):
            named = place
            if kind == DOCUMENT and is_one_of(data, key, key_end, _WRAPPER):
                return False
        if is_one_of(data, key, key_end, _DB):
            database = place
        elif is_one_of(data, key, key_end, _COLLECTION):
            collection = place
    if at != last:
        return False
    rows[row, COMMAND], rows[row, COMMAND_END] = name, name_end
    if database >= 0 and number(data, database, 4) > 1:
        rows[row, DATABASE], rows[row, DATABASE_END] = database + 4, database + 3 + number(data, database, 4)
    if not is_one_of(data, name, name_end, _GET_MORE):
        collection = named if is_one_of(data, name, name_end, _ON_A_COLLECTION) else np.int64(FAIL)
    if collection >= 0:
        rows[row, COLLECTION], rows[row, COLLECTION_END] = collection + 4, collection + 3 + number(data, collection, 4)
    return True


@compiled(types.boolean, BYTES_IN, types.int64, types.int64, _ROWS, types.int64)
def _read_query(data, start, stop, rows, row):
    """As :func:`_read_command`, of an OP_QUERY that is a command."""
    name = start + HEADER_BYTES + 4
    begin, end = query_place(data, start, stop)
    name_end = begin - 9
    if end < 0 or not data[begin + 4] or not is_one_of(data, max(name, name_end - 5), name_end, _CMD):
        return False
    for at in range(name, name_end):
        if data[at] >= 0x80:
            return False
    if not _read_command(data, begin, end, rows, row):
        return False
    if rows[row, DATABASE] < 0 and data[name] != 46:
        rows[row, DATABASE] = name
        while data[name] != 46:
            name += 1
        rows[row, DATABASE_END] = name
    return True


@compiled(types.void, BYTES_IN, INTS_IN, BYTES_IN, INTS_IN, INTS_IN, _ROWS, is_entry=True)
def read_fronts(data, starts, is_response, lengths, compressors, rows):
    """Fill a row for each message.

    Args:
        data, starts: the messages, end to end, decompressed.
        lengths: of each on the wire.
        compressors: by which each came; negative: by none.
        rows: see READ.
    """
    for row in range(rows.shape[0]):
        start, stop = starts[row], starts[row + 1]
        for column in range(COLUMNS):
            rows[row, column] = -1
        rows[row, READ] = 0
        if stop - start < HEADER_BYTES + 4 or number(data, start, 4) != stop - start:
            continue
        opcode = number(data, start + 12, 4)
        rows[row, LENGTH] = lengths[row]
        rows[row, REQUEST_ID], rows[row, RESPONSE_TO] = number(data, start + 4, 4), number(data, start + 8, 4)
        rows[row, WIRE_OPCODE], rows[row, OPCODE] = OP_COMPRESSED if compressors[row] >= 0 else opcode, opcode
        flags = number(data, start + HEADER_BYTES, 4)
        rows[row, FLAGS] = flags & 0xFFFFFFFF if opcode == OP_MSG else flags
        is_read = False
        if opcode == OP_MSG:
            end = command_end(data, start, stop)
            begin = start + FIRST_DOCUMENT
            is_read = end >= 0 and (is_response[row] != 0 or _read_command(data, begin, end, rows, row))
        elif opcode == OP_QUERY:
            is_read = is_response[row] == 0 and _read_query(data, start, stop, rows, row)
        elif opcode == OP_REPLY:
            is_read = stop - start >= REPLY_DOCUMENTS
        rows[row, READ] = is_read
