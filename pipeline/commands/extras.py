"""The extras that each command needs, demanded before it runs and not while it is at work."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from pipeline.errors import UserError
from pipeline.setup.system import EXTRAS, how_to_install

NEEDED = {
    "open": "open",
    "stream": "spark",
    "check": "spark,quality",
    "findings": "sql",
    "notify": "sql",
    "dashboard": "dashboard",
    "sql": "sql",
    "backfill": "spark",
    "maintain": "spark",
    "migrate": "spark",
    "jdbc": "spark",
    "register": "sql",
    "demo": "spark,quality",
    "setup": "spark",
}
"""The extras of this distribution without which a command cannot do its work, by its name."""


def demanding_extras(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command, which raises UserError where an extra that it needs is not installed.

    Its help is shown without.
    """
    extras = NEEDED.get(name)
    if extras is None:
        return run

    @functools.wraps(run)
    def checked(*arguments: Any, **options: Any) -> Any:
        for package, extra in EXTRAS.items():
            if extra in extras.split(",") and not _is_installed(package):
                how = how_to_install(extras)
                raise UserError(f"`wirelake {name}` needs {package}, which is not installed: {how}")
        return run(*arguments, **options)

    return checked


def _is_installed(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    return find_spec(package) is not None
