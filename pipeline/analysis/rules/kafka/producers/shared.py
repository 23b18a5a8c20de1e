"""Rules that two functions find: what the broker refused, and what can be seen in the batches themselves."""

from __future__ import annotations

from pipeline.analysis.libraries import CHECKS_CRCS
from pipeline.analysis.rules.rule import Rule

_REFUSED = (
    "Now: stop this client. Fix: something on the way changes bytes: look at its memory and library, and at the "
    "network."
)
CORRUPT = (
    "Now: stop that client if it is in what is sent, take the broker's disk out of use if it is in what is "
    "read (`kafka-dump-log.sh --deep-iteration --files LOG_FILE` shows it). Fix: something on the way changes bytes: "
    f"memory, library, disk or network; {CHECKS_CRCS}."
)
CRC_MISMATCH = Rule(
    "crc_mismatch",
    "kafka",
    ("critical",),
    "The checksum of a record batch does not match its content.",
    reads=("batches", "exchanges"),
    advice=(_REFUSED, CORRUPT),
)
TOO_LARGE = (
    "Now: stop writing such records, or raise max.message.bytes of the topic together with "
    "max.partition.fetch.bytes of its readers: they were not written. Fix: make them smaller (compression.type, "
    "or put large values elsewhere and send a reference)."
)
SPLIT = (
    "Now: nothing: the producer made smaller batches of them, and these were written. Fix: a batch.size "
    "(librdkafka: message.max.bytes) that is not larger than max.message.bytes of the topic."
)
TINY = (
    "Now: nothing, unless the brokers are short of CPU: it may be meant so (linger.ms=0). Fix: raise "
    "linger.ms (5 to 100 ms) and batch.size, and compress (compression.type); do not flush after each record."
)
BATCH_SIZES = Rule(
    "oversized_or_tiny_batches",
    "kafka",
    ("warning", "info"),
    "A producer sends batches that the topic does not allow, or one record a batch.",
    ("tiny_batches", "tiny_records"),
    ("batches", "exchanges"),
    advice=(TOO_LARGE, SPLIT, TINY),
)
