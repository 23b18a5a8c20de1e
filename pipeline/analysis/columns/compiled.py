"""Whether a compiled pass over rows pays: it loads machine code, and compiles it where no process has yet."""

from __future__ import annotations

from decoder.kernel.cache import is_compiled

_KEPT: set[tuple[str, str]] = set()
"""What was found on disk: it is looked for once."""


def pays(rows: int, *, after: int, compiling_after: int, kernel: tuple[str, str]) -> bool:
    """Whether there are this many rows.

    Args:
        rows: how many there are.
        after: from how many on loading pays.
        compiling_after: from how many on compiling pays.
        kernel: package, and module and function, see :func:`decoder.kernel.cache.is_compiled`.
    """
    return rows >= after and (rows >= compiling_after or _is_kept(kernel))


def _is_kept(kernel: tuple[str, str]) -> bool:
    if kernel not in _KEPT and is_compiled(*kernel):
        _KEPT.add(kernel)
    return kernel in _KEPT
