"""Redaction of large frames by compiled code: the plain reader takes a tenth of a second for a response of 4 MB."""

from __future__ import annotations

from decoder.kafka.codec.quick_look import LOOK_UNITS, LOOKED_AT_BYTES
from decoder.model import Frame
from decoder.work import METER
from pipeline.config.memory_limits import is_capture_code_compiled

LARGE = 65_536
"""Bytes of a frame from which on loading the compiled code pays, which takes 60 ms."""


def is_clean_by_kernel(frame: Frame) -> bool:
    """Whether a large frame can be stored as it is; False also where the plain reader has to find out.

    The work that a plain look takes is counted, so that every machine decides alike what strangers may cause.
    """
    if len(frame.frame) < LARGE or frame.protocol != "kafka" or not is_capture_code_compiled():
        return False
    from decoder.kafka.bulk import KafkaBulk  # noqa: PLC0415 - loads compiled code

    if KafkaBulk.sealed(frame) is not frame:
        return False
    METER.units += LOOK_UNITS + len(frame.frame) // LOOKED_AT_BYTES
    return True
