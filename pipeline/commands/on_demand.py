"""Commands that are loaded when they are asked for: none waits for what another one needs."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from pipeline.commands.extras import demanding_extras
from pipeline.config.validation_messages import validation_message
from pipeline.errors import UserError
from pipeline.terminal.metavars import make_plain

_GROUPS = {
    "Investigate a capture": {
        "diagnose": "pipeline.commands.diagnose",
        "open": "pipeline.commands.open.open",
        "top": "pipeline.commands.top.top",
        "decode": "pipeline.commands.messages.decode",
        "explain": "pipeline.commands.messages.explain",
        "connections": "pipeline.commands.connections",
    },
    "Ask a lake": {
        "findings": "pipeline.commands.findings",
        "dashboard": "pipeline.commands.dashboard",
        "sql": "pipeline.commands.sql.sql",
        "tables": "pipeline.commands.sql.sql_catalog",
        "describe": "pipeline.commands.sql.sql_catalog",
        "notify": "pipeline.commands.notify",
        "jdbc": "pipeline.commands.jdbc",
        "register": "pipeline.commands.register",
    },
    "Keep a lake": {
        "capture": "pipeline.capture.cli",
        "stream": "pipeline.commands.lake",
        "check": "pipeline.commands.lake",
        "maintain": "pipeline.commands.lake",
        "migrate": "pipeline.commands.migrate",
        "backfill": "pipeline.commands.lake",
    },
    "Begin": {
        "demo": "pipeline.commands.demo",
        "setup": "pipeline.commands.setup",
        "doctor": "pipeline.commands.doctor",
    },
}
"""The commands as the overview lists them, and the module of each."""
MODULES = {name: module for group in _GROUPS.values() for name, module in group.items()}
"""Where each command is: the function of its name, with further commands of its own in ``<name>_app``."""

WITH_PANDAS = frozenset({"stream", "check", "dashboard", "backfill", "maintain", "migrate", "demo", "jdbc", "register"})
"""Those that hand frames of it to Spark, Great Expectations or the page; the others would load it for nothing."""

_PACKAGES = Path(__file__).parents[2]
_NOT_LOADED = TyperCommand("not loaded")


class CommandsOnDemand(TyperGroup):
    """The commands of ``MODULES``."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": dict.fromkeys(MODULES, _NOT_LOADED)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded now; None if there is none."""
        if cmd_name == "help":
            raise UserError(
                "`wirelake --help` lists the commands, `wirelake COMMAND --help` explains one; -h is short for --help"
            )
        return _load(cmd_name) if cmd_name in MODULES else None

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for; a value that it does not take is reported in plain words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = validation_message(error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands by group, and load none."""
        for title, group in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _description(name)) for name in group])


def _load(name: str) -> Any:
    module = importlib.import_module(MODULES[name])
    alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if further := getattr(module, f"{name}_app", None):
        alone.add_typer(further, name=name)
    else:
        alone.command(name)(demanding_extras(name, getattr(module, name)))
    command = typer.main.get_group(alone).commands[name]
    make_plain(command)
    return command


def _description(name: str) -> str:
    """The first sentence of the docstring of a command's function, read from its source."""
    source = _PACKAGES.joinpath(*MODULES[name].split(".")).with_suffix(".py").read_text(encoding="utf-8")
    text = next(
        ast.get_docstring(part) or ""
        for part in ast.parse(source).body
        if isinstance(part, ast.FunctionDef) and part.name == name
    )
    return text.partition("\n\n")[0].partition(". ")[0].removesuffix(".")
