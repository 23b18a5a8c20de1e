"""Reads many frames at once, straight from bytes into JSON text: the batch kernel, machine code by numba.

It walks the same programs as the plain reader (:mod:`decoder.kafka.codec.bodies`) and gives the same text, byte by
byte, for frames in which everything fits. At the first thing that does not (a length that overruns, a tag that no
schema knows, an api of a newer release), or that is rare and needs a library (a float, a compressed message of the old
formats), it gives the frame back as :data:`GIVEN_BACK`, and the plain reader decides. So there is one place that
knows errors, and the two cannot disagree about them.

Importing this module compiles it (some ten seconds), or loads what an earlier process compiled from numba's cache.
"""

# ruff: noqa: C901, PLR0912
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

import numpy as np

from decoder.kafka.apis import ApiKey
from decoder.kafka.kernel.message import TABLES, put_message
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FULL, put_plain, signed
from decoder.model import FrameFlags

DECODED = 0
"""Outcome of a frame: its columns hold text."""
NO_CLIENT_ID = 1
"""Outcome of a frame: as DECODED, but the header has no client id, or null."""
GIVEN_BACK = 2
"""Outcome of a frame: the plain reader must read it; its columns are empty."""

HEADER, BODY, BATCHES, CLIENT_ID = 0, 1, 2, 3
"""Columns of text that the kernel writes."""
COLUMNS = 4

_API_VERSIONS = int(ApiKey.API_VERSIONS)
_LEFT_TO_PLAIN = int(
    FrameFlags.TRUNCATED
    | FrameFlags.REDACTED
    | FrameFlags.SASL_TOKEN
    | FrameFlags.PAYLOAD_DROPPED
    | FrameFlags.BODY_REMOVED
)
_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_ROWS = types.int64[:, ::1]


@compiled(types.void, _ROWS)
def _forget(where):
    for row in range(where.shape[0]):
        where[row, 0] = where[row, 1] = -1


@compiled(
    types.int64, TABLES, _ROWS, _ROWS, BYTES_IN, _INTS_IN, BYTES_IN, _INTS_IN, _INTS_IN, _INTS_IN, types.int64,
    BYTES_OUT, BYTES_OUT, BYTES_OUT, BYTES_OUT, _ROWS, BYTES_OUT, types.int64[::1], types.int64[::1], is_entry=True,
)  # fmt: skip
def read_frames(tables, stack, where, data, starts, is_response, api_keys, api_versions, flags, first, header, body,
                batches, client_id, ends, outcomes, keys, versions):  # fmt: skip
    """Read frames from number ``first`` on until all are read or a column is full; returns the next number."""
    bodies = tables.bodies
    for number in range(first, outcomes.shape[0]):
        pos, end = starts[number], starts[number + 1]
        h_at = b_at = r_at = c_at = np.int64(0)
        if number:
            h_at, b_at = ends[number - 1, HEADER], ends[number - 1, BODY]
            r_at, c_at = ends[number - 1, BATCHES], ends[number - 1, CLIENT_ID]
        ends[number, HEADER], ends[number, BODY] = h_at, b_at
        ends[number, BATCHES], ends[number, CLIENT_ID] = r_at, c_at
        outcomes[number] = GIVEN_BACK
        side = 1 if is_response[number] else 0
        key, version = np.int64(api_keys[number]), np.int64(api_versions[number])
        if not side and end - pos >= 4:
            key, version = signed(data, pos, 2), signed(data, pos + 2, 2)
        keys[number], versions[number] = key, version
        if (
            flags[number] & _LEFT_TO_PLAIN
            or end - pos < 4
            or not 0 <= key < bodies.shape[1]
            or not 0 <= version < bodies.shape[2]
            or bodies[side, key, version] < 0
        ):
            continue
        if header.shape[0] - h_at < 256 or body.shape[0] - b_at < 256:
            return number
        _forget(where)
        pos, h_at, _ = put_message(
            tables.headers[side, key, version],
            tables,
            data,
            pos,
            end,
            flags[number],
            where,
            stack,
            header,
            h_at,
            batches,
            r_at,
        )
        if pos == FULL:
            return number
        if pos < 0:
            continue
        client_begin, client_end = where[3, 0], where[3, 1]
        _forget(where)
        if tables.is_batch_api[side, key]:
            where[2, 1] = 0
        where[3, 0] = r_at
        batches_begin = r_at
        body_begin, start = pos, bodies[side, key, version]
        # The agent's verdict is on the batches of these messages, see messages.BATCHES_AT.
        known = flags[number] if tables.is_batch_api[side, key] else 0
        pos, b_at, r_at = put_message(
            start, tables, data, body_begin, end, known, where, stack, body, b_at, batches, r_at
        )
        if side and key == _API_VERSIONS and pos not in (FULL, end):
            # A broker that does not know the version asked for answers in v0 (KIP-511).
            b_at, start = ends[number, BODY], bodies[side, key, 0]
            pos, b_at, r_at = put_message(
                start, tables, data, body_begin, end, known, where, stack, body, b_at, batches, r_at
            )
        if pos == FULL:
            return number
        if pos != end:
            continue
        if r_at > batches_begin:
            if r_at == batches.shape[0]:
                return number
            batches[r_at] = 93
            r_at += 1
        has_client_id = client_begin >= 0 and data[client_begin] < 128
        if has_client_id:
            if client_id.shape[0] - c_at < 3 * (client_end - client_begin):
                return number
            c_at = put_plain(client_id, c_at, data, client_begin + 2, client_end)
        ends[number, HEADER], ends[number, BODY] = h_at, b_at
        ends[number, BATCHES], ends[number, CLIENT_ID] = r_at, c_at
        outcomes[number] = DECODED if has_client_id else NO_CLIENT_ID
    return outcomes.shape[0]
