"""How a report is written for whom it is pasted to: Markdown, Slack's own, or plain text. Text in, text out."""

from __future__ import annotations

import re
from typing import Protocol

from pipeline.dashboard.web.format import code, literal, literal_prose
from pipeline.terminal.console import printable

_SPAN = re.compile(r"`([^`\n]+)`")
_WOULD_FORMAT = re.compile(r"(?<!\S)(?=\S*[*~`]|\S*_(?!\S))\S+")
"""A word that Slack may take as bold, struck out, code or emphasis."""


class Style(Protocol):
    """What a report is made of."""

    def heading(self, text: str, address: str) -> str:
        """A text of the wire as the heading, which leads to an address if there is one."""

    def strong(self, text: str) -> str:
        """A label of ours."""

    def text(self, text: str) -> str:
        """A text with names of the wire, of which nothing formats."""

    def prose(self, text: str) -> str:
        """A text of ours, whose code spans are read."""

    def code(self, text: str) -> str:
        """A name of the wire as code."""

    def item(self, text: str, depth: int = 0) -> str:
        """A line of a list."""

    def block(self, text: str) -> list[str]:
        """Lines of code."""


class Markdown:
    """As tickets and most chats read it; only what would format has a backslash."""

    def heading(self, text: str, address: str) -> str:
        """See Style."""
        return f"## [{literal(text)}](<{address}>)" if address else f"## {literal(text)}"

    def strong(self, text: str) -> str:
        """See Style."""
        return f"**{text}**"

    def text(self, text: str) -> str:
        """See Style."""
        return literal(text)

    def prose(self, text: str) -> str:
        """See Style."""
        return literal_prose(text)

    def code(self, text: str) -> str:
        """See Style."""
        return code(text)

    def item(self, text: str, depth: int = 0) -> str:
        """See Style."""
        return f"{'  ' * depth}- {text}"

    def block(self, text: str) -> list[str]:
        """See Style."""
        return ["```sql", text.replace("```", ""), "```"]


class Slack:
    """Slack's mrkdwn, which has no backslash: what would format is in a code span."""

    def heading(self, text: str, address: str) -> str:
        """See Style."""
        shown = _escaped(text)
        return f"*<{address}|{shown.replace('|', '¦')}>*" if address else self.strong(self.text(text))

    def strong(self, text: str) -> str:
        """See Style."""
        return f"*{text}*"

    def text(self, text: str) -> str:
        """See Style."""
        return _WOULD_FORMAT.sub(lambda found: f"`{found[0].replace('`', chr(39))}`", _escaped(text))

    def prose(self, text: str) -> str:
        """See Style."""
        parts = enumerate(_SPAN.split(text))
        return "".join(self.code(part) if index % 2 else self.text(part) for index, part in parts)

    def code(self, text: str) -> str:
        """See Style."""
        return f"`{_escaped(text).replace('`', chr(39))}`" if text else "(empty)"

    def item(self, text: str, depth: int = 0) -> str:
        """See Style."""
        return f"{'    ' * depth}• {text}"

    def block(self, text: str) -> list[str]:
        """See Style."""
        return ["```", _escaped(text).replace("```", ""), "```"]


class Plain:
    """Text alone, for an e-mail or a terminal."""

    def heading(self, text: str, address: str) -> str:
        """See Style."""
        return "\n".join((printable(text), *([address] if address else [])))

    def strong(self, text: str) -> str:
        """See Style."""
        return text

    def text(self, text: str) -> str:
        """See Style."""
        return printable(text)

    def prose(self, text: str) -> str:
        """See Style."""
        return printable(_SPAN.sub(r"\1", text))

    def code(self, text: str) -> str:
        """See Style."""
        return printable(text) or "(empty)"

    def item(self, text: str, depth: int = 0) -> str:
        """See Style."""
        return f"{'  ' * depth}- {text}"

    def block(self, text: str) -> list[str]:
        """See Style."""
        return [f"    {line}" for line in printable(text).splitlines()]


def _escaped(text: str) -> str:
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
