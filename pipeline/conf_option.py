"""The option ``--conf`` of the commands: what stands in the settings file, below what the command line gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import UserError
from pipeline.file_access import restrict_files
from pipeline.settings import Settings, load_settings

Conf = Annotated[Path | None, typer.Option(help="Settings file, see conf/local.yaml.")]


def writing_settings(conf: Path | None, **overrides: str | None) -> Settings:
    """The settings of a command that writes; its files get the file access that they set, from now on.

    Args:
        conf: the settings file; None: there is none.
        overrides: from the command line; None: not given there.

    Raises:
        UserError: the file cannot be read, or a key or value is not allowed.
    """
    settings = load_settings(conf, **overrides)
    restrict_files(settings.file_access)
    return settings


def required(settings: Settings, name: str) -> str:
    """A setting without a default.

    Raises:
        UserError: it was not given.
    """
    value = getattr(settings, name)
    if not value:
        raise UserError(f"name the {name}: --{name} DIR, or `{name}:` in the file given by --conf")
    return str(value)
