"""Wirelake's decoder: bytes in, values out. Imports neither Spark nor pandas, opens no file, reads no clock."""

from decoder.codec import CODEC_VERSION, Codec
from decoder.model import Frame, FrameFlags, Message

__all__ = ["CODEC_VERSION", "Codec", "Frame", "FrameFlags", "Message"]
