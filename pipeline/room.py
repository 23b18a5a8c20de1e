"""Room in memory: whether this process may take as much as loading the compiled code needs.

Where a limit of the process (``ulimit -v``) is reached in the middle of that, nothing can be caught: LLVM aborts, or
raises what is no MemoryError, and each retry compiles the same functions again.
"""

from __future__ import annotations

import mmap
import resource

_TO_COMPILE = 1024 * 1024 * 1024
"""Bytes that compiling takes at most; what was compiled before takes a third of it."""
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


def has_room_to_compile() -> bool:
    """Whether compiled code can be loaded; without it everything is read plainly, which takes longer."""
    return all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in _LIMITS) or _can_take(_TO_COMPILE)


def _can_take(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except (OSError, MemoryError):
        return False
    return True
