"""The option ``--conf`` of the commands: what is in the settings file, below what the command line gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.config.settings import Settings, load_settings
from pipeline.errors import UserError
from pipeline.lake.path_checks import url_cut_short
from pipeline.lake.permissions import restrict_files


def whole_lake(place: str | None) -> str | None:
    """What ``--lake`` names, if anything; raises as :func:`whole_url`."""
    return None if place is None else whole_url("--lake", place)


Lake = Annotated[str, typer.Option(help="The lake's folder, or its URL.", callback=whole_lake)]
"""Of commands that read one, and cannot do without."""

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
    """A place that is a setting without a default.

    Raises:
        UserError: it was not given, or is a URL with a slash too few.
    """
    value = getattr(settings, name)
    if not value:
        raise UserError(f"name the {name}: --{name} DIR, or `{name}:` in the file given by --conf")
    return whole_url(f"--{name}", str(value))


def whole_url(option: str, place: str) -> str:
    """The place that an option names, a folder or a URL.

    Raises:
        UserError: it is a URL with a slash too few, which would be a folder beside us.
    """
    if problem := url_cut_short(option, place):
        raise UserError(problem)
    return place
