"""Where does compiled machine code stay from one process to the next? In a folder named by the sources.

numba itself names its cache by the path of the source file, which for zipped sources changes with every Spark job, and
compiles a function anew only when its own file changed, not one that it calls or takes constants from.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.caching import _CacheLocator


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
    """Tells numba where to keep a function: see https://numba.readthedocs.io, NUMBA_CACHE_LOCATOR_CLASSES."""

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
        """Tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> SourceNamedCache | None:
        """The first folder that can be written; None if there is none."""
        for root in _roots():
            locator = cls(root, py_func.__module__.rpartition(".")[0], py_func.__code__.co_firstlineno)
            try:
                locator.ensure_cache_path()
            except OSError:
                continue
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
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(f"no compiled kernel {name} in {', '.join(map(str, _roots()))}")


def _folder_name(digest: str) -> str:
    return f"kernel-{digest[:16]}"


def _roots() -> Iterator[Path]:
    """NUMBA_CACHE_DIR if given; else the user's cache; for a service without a home, where temporary files are."""
    if nb.config.CACHE_DIR:
        yield Path(nb.config.CACHE_DIR)
        return
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelake"
    yield Path(tempfile.gettempdir()) / f"wirelake-cache-{os.getuid()}"


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
