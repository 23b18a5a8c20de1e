"""What a rule is called and means: its page of the documentation, in a checkout and in the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PLACES = (Path(__file__).parents[4] / "docs" / "rules", Path(__file__).parents[1] / "rules")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n*")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_NAME = re.compile(r"[a-z0-9_]+")


def rule_title(rule: str) -> str:
    """A rule's title, such as "Offset stuck"; its name if there is no page of it."""
    title, _ = _page(rule)
    return title or rule


def rule_page(rule: str) -> str | None:
    """The text of a rule's page in Markdown, without title and picture, its links as names; None if there is none."""
    _, text = _page(rule)
    return text


@cache
def _page(rule: str) -> tuple[str | None, str | None]:
    """The title and the text of a rule's page."""
    if not _NAME.fullmatch(rule):
        return None, None
    for place in _PLACES:
        page = place / f"{rule}.md"
        if page.is_file():
            heading, _, text = page.read_text(encoding="utf-8").partition("\n")
            title = heading.removeprefix("# ").removesuffix(f" ({rule})")
            return title, _LINK.sub(r"**\1**", _PICTURE.sub("", text)).strip()
    return None, None
