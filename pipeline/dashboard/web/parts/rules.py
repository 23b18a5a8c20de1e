"""What a rule is called and means: its page of the documentation, in a checkout and in the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pipeline.analysis.rules.rule import rules_by_name

_PLACES = (Path(__file__).parents[4] / "docs" / "rules", Path(__file__).parents[1] / "rules")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n*")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_NAME = re.compile(r"[a-z0-9_]+")


def rule_title(rule: str) -> str:
    """A rule's title, such as "Offset stuck"; of one that is not installed any more its name."""
    known = rules_by_name().get(rule)
    return known.title if known else rule


@cache
def rule_page(rule: str) -> str | None:
    """The text of a rule's page in Markdown, without title and picture, its links as names; None if there is none."""
    if not _NAME.fullmatch(rule):
        return None
    for place in _PLACES:
        page = place / f"{rule}.md"
        if page.is_file():
            _, _, text = page.read_text(encoding="utf-8").partition("\n")
            return _LINK.sub(r"**\1**", _PICTURE.sub("", text)).strip()
    return None
