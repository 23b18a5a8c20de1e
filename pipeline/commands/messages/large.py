"""Large messages are read by the compiled kernel, which gives what the plain reader gives in a tenth of the time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import orjson

from decoder import Frame, Message
from decoder.columns import Texts
from decoder.protocols import protocol_of
from pipeline.analysis.frames.effort import Effort, without_zeros

LARGE = 65_536
"""Bytes from which on a frame is large, without long runs of zeros, which are records that no reader walks."""


class LargeMessages:
    """Decodes large frames, once there are enough of them that loading the kernel pays.

    Args:
        as_text: leave bodies as the text of JSON that the kernel wrote, to be written down as they are.
    """

    def __init__(self, *, as_text: bool = False) -> None:
        self._effort = Effort()
        self._as_text = as_text

    def read(self, frame: Frame) -> Message | None:
        """The message of a large frame, as Codec.decode gives it; None where the plain reader has to read."""
        data = frame.frame
        if len(data) < LARGE:
            return None
        size = without_zeros(data)
        self._effort.bytes_to_walk += size if size >= LARGE else 0
        if size < LARGE or not self._effort.pays():
            return None
        with _without_collections():
            return _read(frame, orjson.Fragment if self._as_text else orjson.loads)


def _read(frame: Frame, load: Callable[[bytes], Any]) -> Message | None:
    key, version = frame.api_key, frame.api_version
    if frame.direction != "response" or key is None or version is None:
        return None  # requests that are large carry records
    numbers = (np.array([number], np.int64) for number in (key, version, frame.flags))
    read = protocol_of(frame.protocol).decode_many([frame.frame], np.ones(1, np.bool_), *numbers)
    if read is None or not read.is_read[0] or "embedded" in read.columns:
        return None
    name, batches = read.columns.get("api_name"), read.columns.get("record_batches")
    header, body = read.columns["header"].values, read.columns["body"].values
    if name is None or batches is None or batches.is_valid[0]:
        return None
    if not isinstance(header, Texts) or not isinstance(body, Texts):
        return None
    return Message(
        orjson.loads(header[0]), load(body[0]), "ok", api_key=key, api_version=version,
        api_name=name.names[np.asarray(name.values)[0]],
    )  # fmt: skip


@contextmanager
def _without_collections() -> Iterator[None]:
    """Make a million values at once without a search for garbage among them, which takes longer than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
