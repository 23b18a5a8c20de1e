"""What libraries say of a wrong value, in words of people who do not know their types."""

from __future__ import annotations

import re
from collections.abc import Callable

_PLAIN = {"dictionary": "mapping of names to values", "list": "list"}
_KNOWN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Input should be a valid integer.*"), "give a whole number"),
    (re.compile(r"Input should be a valid number.*"), "give a number"),
    (re.compile(r"Input should be a valid string"), "give a text"),
    (re.compile(r"Input should be a valid boolean.*"), "give true or false"),
    (re.compile(r"Input should be a valid (dictionary|list).*"), lambda found: f"give a {_PLAIN[found[1]]}"),
    (re.compile(r"Input should be a finite number"), "give a finite number"),
    (re.compile(r"Input should be a valid timedelta.*"), "give seconds, or a span as PT10M"),
    (re.compile(r"Input should be greater than or equal to (.+)"), r"give at least \1"),
    (re.compile(r"Input should be less than or equal to (.+)"), r"give at most \1"),
    (re.compile(r"Input should be greater than 0 seconds"), "give more than 0"),
    (re.compile(r"Input should be greater than (.+)"), r"give more than \1"),
    (re.compile(r"Input should be less than (.+)"), r"give less than \1"),
    (re.compile(r"Input should be '(.+)"), r"give '\1"),
    (re.compile(r"('.*') does not match the formats? '%Y-%m-%d'\.?"), r"\1 is no day: write it as 2026-11-21"),
)
"""What pydantic and typer say, and what stands for it."""


def validation_message(message: str) -> str:
    """A message of pydantic or typer; one that is not known stays as it is."""
    words = message.removeprefix("Value error, ")
    for pattern, plain in _KNOWN:
        if (found := pattern.fullmatch(words)) is not None:
            return plain(found) if callable(plain) else found.expand(plain)
    return words
