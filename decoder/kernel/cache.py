"""Where does compiled machine code stay from one process to the next? In a folder named by the sources.

numba itself names its cache by the path of the source file, which for zipped sources changes with every Spark job, and
compiles a function anew only when its own file changed, not one that it calls or takes constants from.

What lies there is run: whoever can write to the folder runs code as this user. So it belongs to this user or root,
no group and nobody else may write to it or put another in its place, and it is never in a folder for temporary files
under a name that others can guess.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.caching import _CacheLocator

_LOG = logging.getLogger(__name__)
_PRIVATE = 0o700
_TRUSTED = (0, os.geteuid())
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def compiled(*signature: Any, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function of the kernel: return type first. Compiles at once, or loads what was compiled before.

    Without its types numba would compile a function anew for each constant that it is called with. No function makes
    or keeps an array, so that numba need not count references to those passed (a third of the time otherwise).
    """
    options = {"cache": True, "nogil": True, "_nrt": False, "error_model": "numpy", "forceinline": inline}

    def decorate(function: Callable[..., Any]) -> Any:
        before = nb.config.CACHE_LOCATOR_CLASSES
        nb.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{SourceNamedCache.__name__}"
        try:
            return nb.njit(signature[0](*signature[1:]), **options)(function)
        finally:
            nb.config.CACHE_LOCATOR_CLASSES = before

    return decorate


class SourceNamedCache(_CacheLocator):  # type: ignore[misc]
    """Names the place where numba keeps a function: see https://numba.readthedocs.io, NUMBA_CACHE_LOCATOR_CLASSES."""

    def __init__(self, root: Path, package: str, line: int) -> None:
        self._digest = _sources_digest(package)
        self._path = root / _folder_name(self._digest)
        self._line = line

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Equal as long as the sources are."""
        return self._digest

    def get_disambiguator(self) -> str:
        """Distinguishes functions of one name."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> SourceNamedCache | None:
        """The first folder that can be written; None if there is none."""
        for root in _roots():
            locator = cls(root, py_func.__module__.rpartition(".")[0], py_func.__code__.co_firstlineno)
            try:
                _make(locator._path)
                locator.ensure_cache_path()
            except OSError:
                continue
            if is_trusted(locator._path):
                return locator
        return None


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


def _folder_name(digest: str) -> str:
    return f"kernel-{digest[:16]}"


def _make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for this user alone; pathlib's ``parents`` obey the umask."""
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(mode=_PRIVATE, exist_ok=True)


def is_trusted(folder: Path) -> bool:
    """Whether nobody but this user and root can have put anything into an existing folder, or can put it there now."""
    try:
        place = folder.resolve(strict=True)
        found = [part.stat() for part in (place, *place.parents)]
    except OSError:
        return False
    itself, *above = found
    is_ours = stat.S_ISDIR(itself.st_mode) and itself.st_uid in _TRUSTED and not itself.st_mode & _OTHERS_WRITE
    return is_ours and all(part.st_uid in _TRUSTED and _keeps_names(part.st_mode) for part in above)


def _keeps_names(mode: int) -> bool:
    """Whether nobody but its owner can put another folder in the place of one in this folder."""
    return not mode & _OTHERS_WRITE or bool(mode & stat.S_ISVTX)


def _roots() -> Iterator[Path]:
    """NUMBA_CACHE_DIR, or what systemd keeps for a service, or the user's cache; at last one for this run only."""
    if nb.config.CACHE_DIR:
        yield Path(nb.config.CACHE_DIR)
    else:
        if given := os.environ.get("CACHE_DIRECTORY"):  # systemd: CacheDirectory=
            yield Path(given.partition(":")[0])
        with suppress(RuntimeError):  # no home is known
            yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelake"
    yield _own_folder()


@lru_cache
def _own_folder() -> Path:
    """A new folder that ends with this process, for one that has no other: it compiles anew each time."""
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
    digest = hashlib.sha256(nb.__version__.encode())
    for folder in ("decoder", *([] if package.startswith("decoder") else [package])):
        for name, content in sorted(_sources(resources.files(folder))):
            digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


def _sources(folder: Any, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _sources(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".py"):
            yield prefix + item.name, item.read_bytes()
