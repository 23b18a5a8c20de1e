"""``python -m tests.release v0.1.0 [--notes FILE]``: compare a tag with the version and the changelog.

Exit code 1 with a sentence if they do not. ``--notes`` writes that version's part of the changelog for the release's
page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tests.paths import ROOT

_HEADING = re.compile(r"^## \[?(?P<name>[^\]\s]+)\]?(?: - (?P<date>\S+))?$", re.MULTILINE)


def parts(changelog: str) -> dict[str, tuple[str | None, str]]:
    """By version: its date, or ``unreleased``; and its text without the heading."""
    found = list(_HEADING.finditer(changelog))
    ends = [one.start() for one in found[1:]] + [len(changelog)]
    return {
        one["name"]: (one["date"], changelog[one.end() : end].strip()) for one, end in zip(found, ends, strict=True)
    }


def fault(tag: str, version: str, changelog: str) -> str | None:
    """What does not agree, in a sentence; None: all does."""
    if tag != f"v{version}":
        return f"the tag is {tag}, but pyproject.toml states version {version}: tag v{version}"
    stated, text = parts(changelog).get(version, (None, ""))
    if not text:
        return f"CHANGELOG.md has no text below a heading '## [{version}] - YYYY-MM-DD'"
    try:
        date.fromisoformat(stated or "")
    except ValueError:
        return f"the heading of {version} in CHANGELOG.md needs a date: '## [{version}] - YYYY-MM-DD'"
    return None


def version_of(pyproject: str) -> str:
    """The version that pyproject.toml states."""
    [found] = re.findall(r'^version = "(.+)"$', pyproject, re.MULTILINE)
    return str(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the files of this checkout with a tag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path, help="write the changelog of this version here")
    chosen = parser.parse_args(arguments)
    version = version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = fault(chosen.tag, version, changelog)
    if found is not None:
        print(found, file=sys.stderr)
        return 1
    if chosen.notes is not None:
        chosen.notes.write_text(parts(changelog)[version][1] + "\n", encoding="utf-8")
    print(f"{chosen.tag}: tag, version and changelog agree")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
