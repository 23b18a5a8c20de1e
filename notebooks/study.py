"""What all notebooks begin with: a lake, its answers as pandas, and what commands print."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import altair as alt
import pandas as pd

import pipeline
from wirelake import query

_lake = ""


def begin(lake: str | None = None) -> str:
    """Work in the checkout, whose samples are read, and return the lake that :func:`ask` asks.

    Args:
        lake: its folder, from the checkout; None: a new one, for a command to fill.
    """
    global _lake  # noqa: PLW0603 - a notebook has one
    os.chdir(Path(pipeline.__file__).parents[1])
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # of Jupyter: what commands print here is for no terminal
        os.environ.pop(name, None)
    os.environ["COLUMNS"] = "110"
    pd.set_option("display.width", 110)
    alt.renderers.enable("png")
    _lake = lake or str(Path(tempfile.mkdtemp()) / "lake")
    return _lake


def wirelake(command: str, lines: int | None = None) -> None:
    """Print what a command prints, or its first lines."""
    done = subprocess.run(["wirelake", *shlex.split(command)], stdout=subprocess.PIPE, text=True, check=False)
    print(*(line.rstrip() for line in done.stdout.splitlines()[:lines]), sep="\n")


def ask(sql: str) -> pd.DataFrame:
    """The answer of the lake as a pandas DataFrame; times are UTC."""
    found = query(_lake, sql).to_pandas()
    times = found.select_dtypes("datetimetz").columns
    return found.assign(**{name: found[name].dt.tz_convert("UTC").dt.tz_localize(None) for name in times})
