"""The reference of commands, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from pipeline.cli import app
from pipeline.commands.on_demand import MODULES
from pipeline.terminal.examples import VERBATIM
from website.markdown import cell, code, table

_INTRO = """# Commands

`wirelake COMMAND --help` prints the same. Exit codes: 0 good, 1 critical findings or failed checks, 2 wrong use or
input that cannot be used, 130 ended by Ctrl-C, 141 if whoever reads the output went away. `--json` prints
[an object a line](json.md)."""
_EXAMPLES = re.compile(r"\n\n *Examples?:\n\n")


def commands_page() -> str:
    """All commands, as they are listed."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="wirelake")
    parts = [_INTRO]
    for name in MODULES:
        command: Any = root.get_command(context, name)  # type: ignore[attr-defined]
        parts.extend(_command(f"wirelake {name}", command))
    return "\n\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner:
        for part, one in inner.items():
            yield from _command(f"{name} {part}", one)
        return
    context = typer.Context(command, info_name=name)
    words, *examples = _EXAMPLES.split(command.help or "")
    yield f"## {name}"
    yield "\n\n".join(cell(part) for part in words.split("\n\n"))
    rows = [record for one in command.params if (record := one.get_help_record(context)) and one.name != "help"]
    if rows:
        yield table(("argument or option", "what"), ((code(left), cell(right)) for left, right in rows))
    if examples:
        lines = [line.removeprefix("  ") for line in examples[0].split("\n") if line.strip() not in ("", VERBATIM)]
        yield "```sh\n" + "\n".join(lines) + "\n```"
