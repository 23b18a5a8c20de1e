"""How the code of a checkout is laid out: ``python -m tests.house CHECKOUT`` prints folders, imports and circles.

Everything is counted in the files that git tracks and that are there, by the same rules whatever the checkout.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

MANY_FILES, MANY_LINES = 15, 400
HOUSES = (
    "decoder", "decoder/kafka", "decoder/mongodb", "pipeline", "pipeline/capture", "pipeline/streaming",
    "pipeline/analysis", "pipeline/analysis/rules", "pipeline/dashboard", "pipeline/commands", "pipeline/embedded",
)  # fmt: skip
_CODE = ("decoder", "pipeline", "wirelake")
_ALL = (*_CODE, "tests", "benchmarks", "airflow_dags")
_PROTOCOL = re.compile("kafka|mongodb", re.IGNORECASE)
_OWN = re.compile(r"/(?:kafka|mongodb)(?:/|\.py$)")
"""A protocol's own folders, and modules of its name."""
_ASKS = re.compile(r"""["'](?:kafka|mongodb)["']""")
"""A protocol's name as a value, whatever is done with it: compared, looked up, handed on, in SQL too."""
Arrows = Mapping[str, frozenset[str]]
"""By who imports, what is imported."""


def python_files(checkout: Path) -> dict[str, str]:
    """The text of each, by its path."""
    listed = ["git", "-C", str(checkout), "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *_ALL]
    paths = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    found = sorted(path for path in paths if path.endswith(".py") and (checkout / path).is_file())
    return {path: (checkout / path).read_text(encoding="utf-8") for path in found}


def room_of(path: str) -> str:
    return str(PurePosixPath(path).parent)


def imports(files: Mapping[str, str]) -> Arrows:
    """What each file of the program imports of it, wherever in the file, but for types alone."""
    code = {path: text for path, text in files.items() if path.startswith(_CODE)}
    return {path: frozenset(_imported(ast.parse(text), code)) - {path} for path, text in code.items()}


def _imported(node: ast.AST, files: Mapping[str, str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                yield from _file_of(f"{child.module}.{alias.name}", files)
        elif isinstance(child, ast.Import):
            for alias in child.names:
                yield from _file_of(alias.name, files)
        yield from _imported(child, files)


def _file_of(name: str, files: Mapping[str, str]) -> Iterator[str]:
    """The file of a module, or of the module that a name is in."""
    place = name.replace(".", "/")
    for candidate in (f"{place}.py", f"{place}/__init__.py", f"{room_of(place)}.py", f"{room_of(place)}/__init__.py"):
        if candidate in files:
            yield candidate
            return


def between_rooms(house: str, arrows: Arrows) -> Arrows:
    """Which room of a house imports from which other one; its rooms are the files and folders in it."""
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    for path, targets in arrows.items():
        room = _room_in(house, path)
        if room is not None:
            rooms[room] |= {_room_in(house, target) or room for target in targets} - {room}
    return {room: frozenset(targets) for room, targets in rooms.items()}


def _room_in(house: str, path: str) -> str | None:
    room = path.removeprefix(f"{house}/").partition("/")[0]
    return None if not path.startswith(f"{house}/") or room == "__init__.py" else room


def both_ways(arrows: Arrows) -> list[tuple[str, str]]:
    """Pairs that import each other."""
    return sorted((one, other) for one in arrows for other in arrows[one] if one < other and one in arrows[other])


def circles(arrows: Arrows) -> list[list[str]]:
    """Those that import each other, directly or by way of others; each once."""
    reached = {one: _reached(one, arrows) for one in arrows}
    groups = {frozenset(other for other in reached[one] if one in reached.get(other, ())) for one in arrows}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reached(start: str, arrows: Arrows) -> set[str]:
    found, left = set[str](), [start]
    while left:
        for target in arrows.get(left.pop(), ()):
            if target not in found:
                found.add(target)
                left.append(target)
    return found


def report(checkout: Path) -> Iterator[str]:
    files = python_files(checkout)
    code = {path: text for path, text in files.items() if path.startswith(_CODE)}
    yield _counted("files of Python", Counter(path.partition("/")[0] for path in files).items())
    folders = Counter(map(room_of, files))
    yield _counted(f"folders with more than {MANY_FILES} files", ((f, n) for f, n in folders.items() if n > MANY_FILES))
    lines = {path: text.count("\n") for path, text in files.items()}
    yield _counted(f"files longer than {MANY_LINES} lines", ((f, n) for f, n in lines.items() if n > MANY_LINES))
    arrows = imports(files)
    for house in HOUSES:
        rooms = between_rooms(house, arrows)
        if rooms:
            yield f"{house}: {len(rooms)} rooms, {sum(map(len, rooms.values()))} arrows, {_circular(rooms)}"
    yield f"all files: {len(arrows)}, {sum(map(len, arrows.values()))} arrows, {_circular(arrows)}"
    elsewhere = {path: text for path, text in code.items() if not _OWN.search(path)}
    naming = [path for path, text in elsewhere.items() if _PROTOCOL.search(text)]
    yield _listed("files that name a protocol outside its own folders, comments too", naming)
    importing = [path for path in elsewhere if any(_OWN.search(target) for target in arrows[path])]
    yield _listed("files elsewhere that import a protocol's own", importing)
    yield _listed("files elsewhere that ask for a protocol by name", asking(files))


def asking(files: Mapping[str, str]) -> list[str]:
    """The files of the program that ask for a protocol by name but are not its own."""
    code = {path: text for path, text in files.items() if path.startswith(_CODE)}
    return [path for path, text in code.items() if not _OWN.search(path) and _ASKS.search(text)]


def _counted(what: str, counts: Iterable[tuple[str, int]]) -> str:
    most_first = sorted(counts, key=lambda item: (-item[1], item[0]))
    return f"{what}: {len(most_first)}\n" + "\n".join(f"  {n:5} {name}" for name, n in most_first)


def _listed(what: str, paths: Sequence[str]) -> str:
    return f"{what}: {len(paths)}\n" + "\n".join(f"        {path}" for path in paths)


def _circular(arrows: Arrows) -> str:
    pairs = ", ".join(" <-> ".join(pair) for pair in both_ways(arrows)) or "none"
    return f"both ways: {pairs}; circles: {'; '.join(map(' '.join, circles(arrows))) or 'none'}"


if __name__ == "__main__":
    print("\n".join(report(Path(sys.argv[1]))))
