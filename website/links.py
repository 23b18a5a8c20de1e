"""Where do links of a page lead in the site? Pages keep the links that are right in the repository.

A link to a page of ``docs`` leads to its page; one to a document beside ``docs`` (``PAGES``) or to a notebook to the
copy that the site has; one to any other file of the repository has no page, and its text alone stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "promises.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "RELEASING.md": "releasing.md",
    "tests/captures/README.md": "samples.md",
    "notebooks/README.md": "notebooks/index.md",
}
"""Documents that are elsewhere in the repository, and where the site has them."""

_FOLDERS = {"docs/rules": "reference/rules.md", "docs/adr": "adr/README.md", "notebooks": "notebooks/index.md"}
"""Folders that are linked, and the page that lists what is in them."""

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r'(src(?:set)?=")(?![a-z]+:)([^"]+)"')
_CODE = re.compile(r"(^```.*?^```$|``[^\n]*?``|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def in_site(markdown: str, source: str, root: Path) -> str:
    """A page's text with links that are right in the site.

    Args:
        markdown: its text, with links that are right in the repository.
        source: its path in the repository.
        root: the repository.

    Raises:
        FileNotFoundError: a link leads to nothing.
    """
    page = _page_of(source) or source

    def link(text: str, target: str, anchor: str) -> str:
        path = _in_repository(source, target)
        if not (root / path).exists():
            raise FileNotFoundError(f"{source} links {target}, which is not there")
        there = _page_of(path)
        return f"[{text}]({_relative(there, page)}{anchor})" if there else text

    def picture(before: str, target: str) -> str:
        path = _in_repository(source, target)
        if not (root / path).exists():
            raise FileNotFoundError(f"{source} shows {target}, which is not there")
        return f'{before}{_relative(_page_of(path) or path, page)}"'

    def rewritten(prose: str) -> str:
        linked = _LINK.sub(lambda found: link(found[1], found[2], found[3] or ""), prose)
        return _PICTURE.sub(lambda found: picture(found[1], found[2]), linked)

    return _outside_of_code(markdown, rewritten)


def _outside_of_code(markdown: str, change: Callable[[str], str]) -> str:
    """Change what is no code; code within the text of a link stays what it is."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(_CODE.sub(keep, markdown))
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], changed)


def _in_repository(source: str, target: str) -> str:
    return os.path.normpath(PurePosixPath(source).parent / target)


def _page_of(path: str) -> str | None:
    """Where in the site's sources a file of the repository is."""
    if path.startswith("notebooks/") and path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    if known := PAGES.get(path) or _FOLDERS.get(path):
        return known
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def _relative(there: str, page: str) -> str:
    return os.path.relpath(there, PurePosixPath(page).parent)
