"""Gives memory that nothing uses any more back to the system, so that one step does not add to the next."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa


def release_unused() -> None:
    """Give back what garbage, Arrow and the C library hold.

    Where the C library has no ``malloc_trim`` (macOS, musl), it keeps its part. Takes some 10 ms for each 100 MB: that
    pays where a step that took much is over and another begins.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
