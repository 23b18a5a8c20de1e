"""``python -m tests.prose [FILE …]``: which lines of the project's texts break a rule of its vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.paths import ROOT
from tests.prose import texts
from tests.prose.checks import places

_LEFT_OUT = ("tests/prose/", "docs/reference/")
"""What names the words to avoid, and pages made from texts that are read where they are written."""
_CODE_OF_TESTS = ("tests/", "benchmarks/")
"""Whose strings are data, so that only their Markdown is read."""


def broken(paths: Iterable[Path]) -> Iterator[str]:
    """A line for each place that breaks a rule, as compilers report them; in the order of files and lines."""
    for path in sorted(paths):
        name = path.resolve().relative_to(ROOT).as_posix()
        if name.startswith(_LEFT_OUT):
            continue
        found = list(places(path.read_text(encoding="utf-8"), names=True)) if path.suffix == ".py" else []
        if not (name.startswith(_CODE_OF_TESTS) and path.suffix == ".py"):
            found += places(texts.read(path))
        yield from (f"{name}:{place.line}: {place.rule}: {place.message}" for place in sorted(found))


if __name__ == "__main__":
    named = [path for path in map(Path, sys.argv[1:]) if texts.is_read(path)]
    found = list(broken(named if sys.argv[1:] else texts.tracked(ROOT)))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(f"{len(found)} places break the vocabulary (tests/prose/vocabulary.yaml)" if found else 0)
