"""Upper bounds, each with the attack or accident that it stops."""

from __future__ import annotations

MAX_FRAME_BYTES = 128 * 1024 * 1024
"""A length prefix of 2^31-1 must not make the framer wait for (or buffer) 2 GiB. Brokers refuse requests above
socket.request.max.bytes (100 MiB by default); fetch responses may exceed it a little."""

MIN_FRAME_BYTES = 4
"""The smallest Kafka frame: a v0 response header is one int32. A smaller length prefix is not Kafka."""

MAX_VALUES_PER_FRAME = 5_000_000
"""Nested arrays whose elements take no bytes (all fields tagged or absent) multiply: 10 x 10 x 10 … "product
bombs" cost memory without costing bytes. Real frames have fewer than one value a byte."""

MAX_DEPTH = 32
"""Recursive structures would exhaust the stack. Kafka's deepest schema nests 7 levels."""

MAX_VARINT_BYTES = 5
"""A 32-bit varint has at most 5 bytes (ByteUtils.readUnsignedVarint); a run of 0x80 bytes must not be followed."""

MAX_VARLONG_BYTES = 10
"""A 64-bit varint has at most 10 bytes (ByteUtils.readVarlong)."""

MAX_BATCHES_PER_FIELD = 100_000
"""A records field full of 12-byte headers would give one summary each."""
