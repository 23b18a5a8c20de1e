"""How this program starts itself in a process of its own: code for ``python -c``."""

from __future__ import annotations

from pathlib import Path

_ROOT = str(Path(__file__).parents[2])

OWN_PATH = f"import sys; sys.path[:] = [*filter(None, sys.path), {_ROOT!r}]"
"""Looks for modules where this program is, and not in the folder where its user is, which ``-c`` puts first."""

RUN = f"{OWN_PATH}; from wirelake.start import main; main()"
"""The command, with the arguments that follow."""
