"""Room in memory: whether this process may take as much as loading the compiled code needs.

Where a limit of the process (``ulimit -v``) is reached in the middle of that, nothing can be caught: LLVM aborts, or
raises what is no MemoryError, and each retry compiles the same functions again.
"""

from __future__ import annotations

import mmap
import resource
from functools import lru_cache

from decoder.kernel.cache import is_compiled

_TO_COMPILE = 1024 * 1024 * 1024
"""Bytes that compiling takes at most; what was compiled before takes a third of it."""
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
CAPTURE_CODE = {
    "pipeline.capture.fast_path": ("lane_kernel.follow", "packet_kernel.dissect"),
    "decoder.kafka.kernel": ("streams.cut", "redact.seal_frames"),
}
"""By package, modules and functions without which captures are not read by the block."""


def has_room_to_compile() -> bool:
    """Whether compiled code can be loaded; without it everything is read plainly, which takes longer."""
    return all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in _LIMITS) or _can_take(_TO_COMPILE)


@lru_cache(maxsize=1)
def is_capture_code_compiled() -> bool:
    """Whether the machine code that reads captures by the block was kept, so that loading it takes no seconds."""
    return all(is_compiled(package, *names) for package, names in CAPTURE_CODE.items())


def _can_take(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except (OSError, MemoryError):
        return False
    return True
