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

MAX_DECOMPRESSED_BATCH_BYTES = 64 * 1024 * 1024
"""A record batch of a few kilobytes can inflate without end. Brokers take 1 MiB a batch by default (max.message.bytes,
of the compressed bytes)."""

MAX_DECOMPRESSION_RATIO = 256
"""A batch may not give more bytes than this for each compressed one: gzip reaches 1032:1, lz4 255:1 and zstd more
than 10,000:1 only with bytes that repeat themselves without end. Not asked of the first DECOMPRESSION_FLOOR bytes."""

DECOMPRESSION_FLOOR = 8 * 1024 * 1024
"""Bytes that any batch may decompress to, whatever the ratio: small batches of very equal records are honest."""

MAX_DECOMPRESSED_FRAME_BYTES = 256 * 1024 * 1024
"""Of all batches of a frame together: a hundred thousand batches, each within its own limits, would be the same bomb in
small pieces."""

MONGODB_DECOMPRESSION_FLOOR = 1024 * 1024
"""Bytes that any MongoDB message may decompress to, whatever the ratio. Lower than that of record batches, which the
agent does not open: twenty messages of 420 bytes that become 8 MiB each kept it busy for a minute."""

MAX_RECORDS_PER_FRAME = 2_000_000
"""A record takes 7 bytes at least, and about 200 once it is a Python object. A full fetch of 50 MB (fetch.max.bytes)
has this many only if its records have less than 25 bytes."""

MAX_ZSTD_WINDOW_BYTES = 128 * 1024 * 1024
"""A zstd frame names the memory that its reader must keep, up to 3.75 TiB. This is what Kafka's own reader (zstd-jni)
allows, and what level 22 asks for."""

MAX_MONGODB_MESSAGE_BYTES = 48_000_000 + 16 * 1024
"""A MongoDB messageLength of 2^31-1 must not make the framer wait for 2 GiB. Servers take 48,000,000 bytes
(maxMessageSizeBytes); a document in a reply may exceed its 16 MiB by 16 KiB."""

MIN_MONGODB_MESSAGE_BYTES = 16
"""The header alone. A smaller messageLength, which counts itself, would never move on."""

MAX_BSON_DEPTH = 200
"""Documents nested deeper would exhaust the stack of whoever reads them recursively. This is mongod's own limit
(maxBSONDepth)."""

MAX_BSON_VALUES = 2_000_000
"""Of a MongoDB message, documents included: 48 MB of fields of 3 bytes would be 16 million Python objects."""

MAX_MONGODB_SECTIONS = 1000
"""Of an OP_MSG: 48 MB of sections of 6 bytes would be 8 million of them. Drivers send three at most."""

WORK_PER_BYTE = 16
"""Units of work (see decoder.work; one takes about a microsecond) that a frame may cause for each of its bytes on the
wire. Uncompressed, no honest frame reaches one: a value takes a byte at least. A reply of ten thousand documents of
sensors reaches 0.8 with zstd; of documents that are all alike 4, of such with nothing but flags 11.5. A bomb of 420
bytes with 1,990,000 values in it asks for 4,700."""

RECORDS_PER_BYTE = 2
"""Messages within compressed ones (formats 0 and 1), which must all be visited to count them, that a frame may have for
each of its bytes beyond WORK_FLOOR. Compressed fiftyfold, messages of 30 bytes reach 1.7. 4 KB of gzip held 40,000."""

WORK_FLOOR = 4_000
"""Units that any frame may cause, however small: short compressed messages of very equal documents are honest."""

BYTES_PER_UNIT = 512
"""Bytes inflated, or bytes of text written, that count as one unit of work."""

TEXT_PER_BYTE = 256
"""Bytes of JSON text that a frame's body may have for each of its bytes on the wire; not asked of the first TEXT_FLOOR.
420 bytes of compressed empty documents became a body of 101 MB."""

TEXT_FLOOR = 256 * 1024
"""Bytes of JSON text that any frame's body may have."""

MAX_BODY_BYTES = 256 * 1024 * 1024
"""Bytes of JSON text that a body may have whatever the frame's size: a few of them must still fit one Arrow column
(2 GiB a chunk) and one Spark row."""
