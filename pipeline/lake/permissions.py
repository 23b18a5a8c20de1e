"""Who may read what this program writes: landing files, tables, checkpoints, caches, sockets."""

from __future__ import annotations

import os
from typing import Literal

FileAccess = Literal["private", "group"]
"""``private``: this user alone; ``group``: its group may read as well."""

_UMASKS: dict[FileAccess, int] = {"private": 0o077, "group": 0o027}


def restrict_files(access: FileAccess) -> None:
    """Files and folders that this process and its children make from now on are for ``access`` only."""
    os.umask(_UMASKS[access])


def current_umask() -> int:
    """The bits that new files do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
