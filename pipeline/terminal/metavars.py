"""Help that names what to give, FILE or NUMBER, where typer names the type that the code has."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from pipeline.terminal.examples import with_examples

_NAMED = {
    "agent_id": "NAME", "allow_host": "NAME", "api": "NAME", "api_key": "NAME", "buffer_mib": "MIB", "captures": "DIR",
    "client": "NAME", "conf": "FILE", "connection": "ID", "date_from": "YYYY-MM-DD", "date_to": "YYYY-MM-DD",
    "duration": "SECONDS", "erase": "NAME=VALUE", "every": "SECONDS", "follow": "DIR", "group": "NAME",
    "hex_text": "HEX", "host": "ADDRESS", "idle_timeout": "SECONDS", "interface": "NAME", "lake": "DIR",
    "landing": "DIR", "memory": "MIB", "payload_key_file": "FILE", "port": "PORT", "publish_every": "SECONDS",
    "rule": "NAME", "since": "TIME", "slower_than": "DURATION", "store_timeout": "SECONDS", "timeout": "SECONDS",
    "tls_keylog": "FILE", "token_file": "FILE", "topic": "NAME", "until": "TIME", "until_idle": "SECONDS",
    "window": "SECONDS",
}  # fmt: skip
"""What some options take, by their names in the code; others take a text or a number."""


def make_plain(command: Any) -> None:
    """Let the help of a command, and of those below it, name what each option takes, and show examples to paste."""
    command.help = with_examples(command.help or "") or None
    if isinstance(command, TyperGroup):
        for one in command.commands.values():
            make_plain(one)
    for param in command.params:
        if param.param_type_name == "argument":
            param.display_type = lambda ctx: ""  # its name says what it is
        elif not param.is_flag and param.metavar is None:
            param.metavar = _NAMED.get(param.name) or _by_type(param)
        if isinstance(param.show_default, str):  # which typer would put into parentheses
            param.help, param.show_default = f"{param.help}  [default: {param.show_default}]", False


def _by_type(param: Any) -> str | None:
    kind = getattr(param, "type_descriptor", None)
    if kind is None:  # an older typer, whose words these are not
        return None
    if kind.is_choice:
        return "|".join(str(getattr(choice, "value", choice)) for choice in kind.choices)
    return "NUMBER" if kind.is_ranged or "int" in param.bare_type() or "float" in param.bare_type() else "TEXT"
