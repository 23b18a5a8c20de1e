"""The import packages ``decoder`` and ``pipeline`` of this distribution, and what else has these names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

NAMES = ("decoder", "pipeline")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes longer to load
"""The folder in which both are: site-packages, or a checkout."""


class _Finder:
    """Finds both packages in :data:`ROOT` alone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [ROOT], target) if name in NAMES and path is None else None


def prefer() -> None:
    """Import both from this distribution from now on, whatever is first on ``sys.path``. For a process of ours."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def demand() -> None:
    """Refuse to import another module of one of these names, which is the caller's own or another distribution's.

    Raises:
        ImportError: names the file that is in the way.
    """
    for name in NAMES:
        place = in_the_way(name)
        if place is not None:
            raise ImportError(
                f"{place} is in the way of Wirelake's own package `{name}`. Rename it, take its folder off sys.path, "
                "or run the command `wirelake`, which does not read it.",
                name=name,
                path=place,
            )


def in_the_way(name: str, path: Sequence[str] | None = None) -> str | None:
    """The file or folder that ``import NAME`` takes instead of ours.

    Args:
        name: one of :data:`NAMES`.
        path: folders in which Python looks, in order; None: ``sys.path``, and what is imported already.

    Returns:
        None if it takes ours, or finds none.
    """
    loaded = sys.modules.get(name) if path is None else None
    spec = loaded.__spec__ if loaded is not None else PathFinder.find_spec(name, path)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    if any(_is_same(folder, os.path.join(ROOT, name)) for folder in folders):  # noqa: PTH118
        return None
    return spec.origin or folders[0]


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def written_over() -> Iterator[tuple[str, str]]:
    """Other distributions that have installed files into our packages: the name of each, and the first such file.

    The installer that ran last has replaced what was there under the same name.
    """
    from importlib.metadata import distributions  # noqa: PLC0415 - needed seldom

    for distribution in distributions():
        name = distribution.metadata["Name"]
        if name == "wirelake":
            continue
        for file in distribution.files or ():
            if file.parts[:1] and file.parts[0] in NAMES and _is_same(str(distribution.locate_file("")), ROOT):
                yield name, str(distribution.locate_file(file))
                break
