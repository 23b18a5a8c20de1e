"""Which words stand in the source, and which of them are none for data? docs/glossary.md has those that are."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

TALK = frozenset({"told", "untold", "said", "tell", "tells", "telling", "hear", "hears", "heard", "hearing"})
"""Who talks where a response states, an incident is reported, and a capture records."""
_BARE_API = re.compile(r"\bapi_key\s*(?:=|==|<>|!=|(?:NOT\s+)?IN\s*\(|(?:not\s+)?in\s*[\[({])\s*\d", re.IGNORECASE)
_BARE_ERROR = re.compile(r"\berror_codes?\s*(?:(?:=|==|<>|!=|IN\s*\(|in\s*[\[({])|,)\s*-?[1-9]", re.IGNORECASE)
"""0 is no error, in Kafka's own text too."""
_TEXT = (tokenize.NAME, tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))


class Place(NamedTuple):
    """Where a word stands: the path of a file, the number of its line, and the line."""

    path: str
    number: int
    line: str


def talking(path: str, text: str) -> Iterator[tuple[Place, str]]:
    """Words of :data:`TALK` in the name of a file, in names, comments and strings, in order; a word once a line."""
    for word in _words(PurePosixPath(path).stem):
        if word in TALK:
            yield Place(path, 0, path), word
    lines, seen = text.splitlines(), set[tuple[int, str]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _TEXT:
            continue
        for number, part in enumerate(token.string.split("\n"), token.start[0]):
            for word in _words(part):
                if word in TALK and (number, word) not in seen:
                    seen.add((number, word))
                    yield Place(path, number, lines[number - 1].strip()), word


def bare_numbers(path: str, text: str) -> Iterator[Place]:
    """Lines in which an api or an error of Kafka is compared with a number instead of its name."""
    for number, line in enumerate(text.splitlines(), 1):
        if _BARE_API.search(line) or _BARE_ERROR.search(line):
            yield Place(path, number, line.strip())


def _words(text: str) -> list[str]:
    """The words of a text, in lower case: those of ``toldOf``, ``ToldOf`` and ``told_of`` are told and of."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower())
