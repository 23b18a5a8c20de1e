"""What a folder is that a user names (a lake, a landing zone, captures), and whether it is a path or a cut URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from shlex import quote

from pipeline.tables import TABLES, WRITTEN_BY_DIAGNOSE

_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)(.*)")
"""A letter alone before the colon is a drive of Windows."""


def is_lake(place: object) -> bool:
    """Whether a folder of this machine holds tables of a lake, damaged or not."""
    return any(_is_there(Path(str(place), table.path)) for table in TABLES.values())


def _is_there(path: Path) -> bool:
    """Whether a path exists, as far as this user may know."""
    try:
        return path.exists()
    except PermissionError:
        return False


def why_unreadable(place: object) -> str:
    """Why this user cannot look into a folder of this machine, and what to do; empty: the user can, or it is not there.

    The first folder on the way that refuses is named.
    """
    path = Path(str(place)).absolute()
    for folder in (*reversed(path.parents), path):
        may_pass = os.access(folder, os.X_OK) and (folder != path or os.access(folder, os.R_OK))
        try:
            is_folder = folder.is_dir()
        except PermissionError:
            is_folder = True
        if is_folder and not may_pass:
            return f"cannot read {folder}: permission denied. {_run_as_owner(folder)}"
    return ""


def _run_as_owner(folder: Path) -> str:
    try:
        return f"Run as its owner, {folder.owner()}"
    except (OSError, KeyError):
        return "Run as its owner"


def is_of_diagnose(place: object) -> bool:
    """Whether ``wirelake diagnose --lake`` wrote a folder of this machine: all at once, so that no job writes to it."""
    return (Path(str(place)) / WRITTEN_BY_DIAGNOSE).exists()


def is_landing_zone(place: object) -> bool:
    """Whether a folder of this machine is one that ``wirelake capture`` wrote to."""
    folder = Path(str(place))
    return _is_there(folder) and folder.is_dir() and any(one.is_dir() for one in folder.glob("date=????-??-??"))


def meant_url(place: str) -> str:
    """The URL that ``s3:/bucket/x`` was to be; empty: it is a URL, or a path that cannot be taken for one."""
    found = _ONE_SLASH.fullmatch(place)
    if found is None:
        return ""
    slashes = ":///" if found[1].lower() == "file" else "://"
    return f"{found[1]}{slashes}{found[2]}"


def url_cut_short(option: str, place: str) -> str:
    """In words that a place is no URL, and which one was meant; empty: there is nothing to say."""
    url = meant_url(place)
    return url and f"{option} {place}: a URL has two slashes, {url}; a folder of that name is ./{place}"


def why_no_captures(place: str) -> str:
    """What a folder without captures is, as the end of a sentence that begins with its name."""
    name = quote(place)
    if is_lake(place):
        return f"is a lake, which holds no captures: `wirelake findings --lake {name}` shows what is wrong in it"
    if is_landing_zone(place):
        return (
            f"is a landing zone: `wirelake diagnose {name}` and `wirelake stream --landing {name} --lake DIR` read it"
        )
    return "is a directory without capture files (looked for *.pcap, *.pcapng, *.cap, also .gz and .zst)"


def how_to_name_a_lake(place: object) -> str:
    """What to do where no lake is, behind a colon."""
    if is_landing_zone(place):
        name = quote(str(place))
        return (
            f"name the folder of one. This is a landing zone: `wirelake diagnose {name} --lake DIR` or "
            f"`wirelake stream --landing {name} --lake DIR --once` makes a lake of it"
        )
    return (
        "name the folder that `wirelake diagnose FILE --lake DIR` or `wirelake stream --landing DIR --lake DIR` wrote, "
        "or run one of them first (diagnose needs no Java)"
    )
