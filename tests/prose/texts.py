"""What a person reads in a file: its prose, on the lines where it is; a bar is in place of the code between."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

_TRIPLE = r'"""(?:\\.|[^\\])*?"""|' + r"'''(?:\\.|[^\\])*?'''"
_SINGLE = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
_PYTHON = re.compile(
    rf"(?P<prefix>\b[rRbBfFuU]{{1,2}})?(?P<string>{_TRIPLE}|{_SINGLE})|(?P<comment>#[^\n]*)", re.DOTALL
)
_CODE = re.compile(r"``[^`]+``|`[^`\n]+`|https?://\S+")
_FIELD = re.compile(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_MARKDOWN = re.compile(
    r"\A---\n.*?\n---\n|^(?P<fence>[ ]*(?:```|~~~)).*?^(?P=fence)[ ]*$|<!--.*?-->|<[^>\n]+>|\]\([^)\n]*\)"
    r"|^[ ]{0,3}\[[^\]]+\]:.*$",
    re.DOTALL | re.MULTILINE,
)
_HASH = re.compile(r"(?:(?<=\s)|^)#[^\n]*|(?<=: )##[^\n]*", re.MULTILINE)
_JOINT = re.compile(r"""["']{0,3}\s*(?:[fFrRuU]{0,2}["']{1,3}|#)?""")
"""What is between two lines of one comment, and between two pieces of one string."""
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type|fmt|pragma|nosec)\b.*")


def read(path: Path) -> str:
    """The prose of a file, as long as the file, with the same lines; empty for a kind of file that has none."""
    cut = _KINDS.get(path.suffix) or (_hashed if path.name == "Makefile" else None)
    return cut(path.read_text(encoding="utf-8")) if cut else ""


def tracked(checkout: Path) -> list[Path]:
    """The files of a checkout that a person reads: those that git tracks, and new ones that it does not ignore."""
    listed = ["git", "-C", str(checkout), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    return [path for path in map(checkout.joinpath, filter(None, names)) if is_read(path) and path.is_file()]


def is_read(path: Path) -> bool:
    return path.suffix in _KINDS or path.name == "Makefile"


def python(text: str) -> str:
    """Docstrings, comments and strings; what a string has in braces or between backticks is code."""
    return _kept(text, _python_spans(text))


def markdown(text: str) -> str:
    """Everything but code, HTML, addresses of links and the head of the page."""
    return _CODE.sub(_blank, _MARKDOWN.sub(_blank, text))


def _hashed(text: str) -> str:
    return _kept(text, (match.span() for match in _HASH.finditer(text)))


def _python_spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _PYTHON.finditer(text):
        if match["comment"] is not None:
            if not _DIRECTIVE.match(match["comment"]):
                yield match.start() + 1, match.end()
        elif "b" not in (match["prefix"] or "").lower():
            quotes = 3 if match["string"][:3] in {'"""', "'''"} else 1
            yield match.start("string") + quotes, match.end() - quotes


def _kept(text: str, spans: Iterator[tuple[int, int]]) -> str:
    parts, at = list[str](), 0
    for start, end in spans:
        between = text[at:start]
        parts.append(_spaces(between) if _JOINT.fullmatch(between) else _barred(between))
        parts.append(_FIELD.sub(_blank, _CODE.sub(_blank, text[start:end])))
        at = end
    return "".join(parts) + _barred(text[at:])


def _blank(match: re.Match[str]) -> str:
    return _barred(match[0])


def _barred(text: str) -> str:
    return _spaces(text).replace(" ", "|", 1)


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


_KINDS: dict[str, Callable[[str], str]] = {
    ".py": python, ".md": markdown, ".yaml": _hashed, ".yml": _hashed, ".toml": _hashed, ".sh": _hashed,
}  # fmt: skip
