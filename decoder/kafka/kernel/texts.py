"""The texts that the kernel writes of every frame: names of a batch's fields, of codecs and control records."""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"

from __future__ import annotations

from decoder.kafka.records.batches import COMPRESSION, CONTROL_TYPES
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_OUT, end_to_end, put_text

_CODEC_NAMES = [*COMPRESSION, "unknown 5", "unknown 6", "unknown 7"]
_FLAG_NAMES = ("isTransactional", "isControlBatch", "hasDeleteHorizonMs")
_CONTROL_NAMES = [f'"{CONTROL_TYPES[number]}"' for number in range(len(CONTROL_TYPES))]
_TEXTS = [
    "null", "true", "false", ',"recordBatches":[', '{"status":"ok","baseOffset":', '{"status":"partial","baseOffset":',
    '{"status":"partial","magic":', ',"lastOffset":', ',"batchLength":', ',"sizeInBytes":', ',"partitionLeaderEpoch":',
    ',"magic":', ',"magic":2,"crc":', ',"crc":', ',"crcValid":null', ',"crcValid":true', ',"crcValid":false',
    ',"lastOffsetDelta":', ',"baseTimestamp":', ',"maxTimestamp":', ',"producerId":', ',"producerEpoch":',
    ',"baseSequence":', ',"producerId":-1,"producerEpoch":-1,"baseSequence":-1', ',"recordsCount":', ',"controlType":',
    ',"coordinatorEpoch":', '{"topic":', ',"topicId":', ',"partition":', '"unknownTaggedFields":{',
    ',"isTransactional":false,"isControlBatch":false',
]  # fmt: skip
(
    NULL, TRUE, FALSE, RECORD_BATCHES, OK_FROM, PARTIAL_FROM,
    PARTIAL_MAGIC, LAST_OFFSET, BATCH_LENGTH, TOTAL_SIZE, LEADER_EPOCH,
    MAGIC, MAGIC_2_CRC, CRC, CRC_UNKNOWN, CRC_VALID, CRC_INVALID,
    LAST_OFFSET_DELTA, BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH,
    BASE_SEQUENCE, NO_PRODUCER, RECORDS_COUNT, CONTROL_TYPE,
    COORDINATOR_EPOCH, TOPIC_KEY, TOPIC_ID_KEY, PARTITION_KEY, UNKNOWN_TAGS,
    NO_FLAGS,
) = range(len(_TEXTS))  # fmt: skip
_KINDS = [
    f',"compressionType":"{codec}","timestampType":"{time}"'
    for time in ("CreateTime", "LogAppendTime", "NoTimestampType")
    for codec in _CODEC_NAMES
]
_FLAGS = [
    ",".join(["", *(f'"{name}":{"true" if bits >> bit & 1 else "false"}' for bit, name in enumerate(_FLAG_NAMES))])
    for bits in range(8)
]
FIRST_KIND = len(_TEXTS)
"""Codec and type of timestamp: plus the codec's number, plus CODECS times the type's."""
CODECS = len(_CODEC_NAMES)
FIRST_FLAGS = FIRST_KIND + len(_KINDS)
"""The flags of a v2 batch: plus bits 4 to 6 of its attributes."""
FIRST_CONTROL = FIRST_FLAGS + len(_FLAGS)
CONTROLS = len(_CONTROL_NAMES)
_TEXT, _TEXT_AT = end_to_end(_TEXTS + _KINDS + _FLAGS + _CONTROL_NAMES)


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, inline=True)
def put(out, at, index):
    """Write one of the constant texts above."""
    return put_text(out, at, _TEXT, _TEXT_AT[index], _TEXT_AT[index + 1])
