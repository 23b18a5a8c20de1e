"""Examples of a command's help: each fits in 80 columns and can be pasted as it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

COLUMNS = 74
"""Columns of an example; help indents it."""
VERBATIM = "\b"
"""A paragraph that begins with this line is not wrapped (click)."""
_EXAMPLES = re.compile(r"\n *Examples?:\n\n")
_COMMENT = re.compile(r" {2,}# (?=[^'\"]*$)")
_LEADING = ("|", "||", "&&", ">", ">>", "<")
_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def with_examples(text: str) -> str:
    """Help whose examples continue behind a backslash where they are long; a comment goes above its command."""
    before, *examples = _EXAMPLES.split(text)
    if not examples:
        return text
    paragraphs = [paragraph.split("\n") for paragraph in re.split(r"\n\n+", examples[0].strip("\n"))]
    shown = [_shown(" ".join(part.strip() for part in lines)) for lines in paragraphs]
    return "\n\n".join((f"{before}\nExamples:", *shown))


def _shown(paragraph: str) -> str:
    """A command; a sentence among the examples is left to be wrapped."""
    return f"  {paragraph}" if "wirelake " not in paragraph else "\n".join((VERBATIM, *_example(paragraph)))


def _example(command: str) -> Iterator[str]:
    command, *comment = _COMMENT.split(command, maxsplit=1)
    if comment:
        yield f"  # {comment[0]}"
    line = ""
    is_long = len(command) > COLUMNS
    for part in _parts(_WORD.findall(command)):
        if line and (len(line) + len(part) + len("  \\") > COLUMNS or (is_long and part.startswith("| "))):
            yield f"  {line} \\"
            line = f"    {part}"
        else:
            line = f"{line} {part}" if line else part
    yield f"  {line}"


def _parts(words: Sequence[str]) -> Iterator[str]:
    """Words that stay on one line: an option with its value, a pipe or redirection with what follows it."""
    part = ""
    for word in words:
        is_value = part.startswith("-") and " " not in part and not word.startswith("-")
        if part and not is_value and part not in _LEADING:
            yield part
            part = ""
        part = f"{part} {word}" if part else word
    yield part
