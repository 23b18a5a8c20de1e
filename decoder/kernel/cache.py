"""Where compiled machine code stays from one process to the next: in a folder named by the sources.

numba's own cache is named by the path of the source file, which for zipped sources changes with every Spark job, and
its functions are compiled again only when their own file changed, not one that they call or take constants from.

What is there is run: whoever can write to the folder runs code as this user. So it belongs to this user or root,
no group or other user may write to it or put another in its place, and it is never in a folder for temporary files
under a name that others can guess.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_LOG = logging.getLogger(__name__)
_PRIVATE = 0o700
_TRUSTED = (0, os.geteuid())
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@lru_cache
def writable_folder(package: str) -> Path:
    """The first folder for the machine code of a package that can be written to, made if it was not there."""
    name = _folder_name(_sources_digest(package))
    for root in _roots():
        with suppress(OSError):
            _make(root / name)
            if is_trusted(root / name) and os.access(root / name, os.W_OK):
                return root / name
    return _own_folder()


def cache_folder(package: str) -> Path:
    """Where the machine code of ``package`` is.

    Args:
        package: one whose kernels this process has loaded, e.g. ``decoder.kafka``.

    Raises:
        FileNotFoundError: none of the folders that are used for it can be written to.
    """
    name = _folder_name(_sources_digest(package))
    for root in _roots():
        if is_trusted(root / name):
            return root / name
    raise FileNotFoundError(f"no compiled kernel {name} in {', '.join(map(str, _roots()))}")


def is_compiled(package: str, *names: str) -> bool:
    """Whether an earlier process kept the machine code of functions, so that no compiler is needed.

    Args:
        package: theirs, e.g. ``decoder.kafka.kernel``.
        names: module and function, e.g. ``bodies.read_frames``.
    """
    name = _folder_name(_sources_digest(package))
    folder = next((root / name for root in _lasting_roots() if is_trusted(root / name)), None)
    return folder is not None and all(any(folder.glob(f"{name}-*.o")) for name in names)


def _folder_name(digest: str) -> str:
    return f"kernel-{digest[:16]}"


def _make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user alone; pathlib's ``parents`` obey the umask."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(mode=_PRIVATE, exist_ok=True)


def is_trusted(folder: Path) -> bool:
    """Whether only this user and root can have put anything into an existing folder, or can put it there now."""
    try:
        place = folder.resolve(strict=True)
        found = [part.stat() for part in (place, *place.parents)]
    except OSError:
        return False
    itself, *above = found
    is_ours = stat.S_ISDIR(itself.st_mode) and itself.st_uid in _TRUSTED and not itself.st_mode & _OTHERS_WRITE
    return is_ours and all(part.st_uid in _TRUSTED and _keeps_names(part.st_mode) for part in above)


def _keeps_names(mode: int) -> bool:
    """Whether only its owner can put another folder in the place of one in this folder."""
    return not mode & _OTHERS_WRITE or bool(mode & stat.S_ISVTX)


def _roots() -> Iterator[Path]:
    """Folders that last; at last one for this run only."""
    yield from _lasting_roots()
    yield _own_folder()


def _lasting_roots() -> Iterator[Path]:
    """NUMBA_CACHE_DIR, or what systemd keeps for a service, or the user's cache."""
    if place := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(place)
    else:
        if given := os.environ.get("CACHE_DIRECTORY"):  # systemd: CacheDirectory=
            yield Path(given.partition(":")[0])
        with suppress(RuntimeError):  # no home is known
            yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelake"


@lru_cache
def _own_folder() -> Path:
    """A new folder that ends with this process, for one that has no other: it compiles again each time."""
    _LOG.warning(
        "no folder for compiled code that only this user can write to: compiling it for this run alone "
        "(set NUMBA_CACHE_DIR to one)"
    )
    folder = tempfile.mkdtemp(prefix="wirelake-kernel-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@lru_cache
def _sources_digest(package: str) -> str:
    """Of the whole decoder, and of the kernel's own package: constants of any module may have become machine code."""
    digest = hashlib.sha256(sys.implementation.cache_tag.encode())
    for compiler in ("numba", "llvmlite"):
        digest.update(_version_of(compiler))
    for folder in ("decoder", *([] if package.startswith("decoder") else [package])):
        for name, content in sorted(_sources(resources.files(folder))):
            digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


def _version_of(compiler: str) -> bytes:
    """The file that states its version, read without importing it."""
    found = find_spec(compiler)
    folder = next(iter(found.submodule_search_locations or ()), "") if found else ""
    return (Path(folder) / "_version.py").read_bytes()


def _sources(folder: Any, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _sources(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".py"):
            yield prefix + item.name, item.read_bytes()
