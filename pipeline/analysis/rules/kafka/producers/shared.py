"""Rules that two functions find: what the broker refused, and what can be seen in the batches themselves."""

from __future__ import annotations

from pipeline.analysis.rules.rule import Rule

CRC_MISMATCH = Rule(
    "crc_mismatch",
    "kafka",
    ("critical",),
    "The checksum of a record batch does not match its content.",
    reads=("batches", "exchanges"),
)
BATCH_SIZES = Rule(
    "oversized_or_tiny_batches",
    "kafka",
    ("warning", "info"),
    "A producer sends batches that the topic does not allow, or one record a batch.",
    ("tiny_batches", "tiny_records"),
    ("batches", "exchanges"),
)
