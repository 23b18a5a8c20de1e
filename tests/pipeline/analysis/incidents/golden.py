"""What is told of each recording, as a person reads it, kept in files. Write them again, then read what has changed:

python -m tests.pipeline.analysis.incidents.golden
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from pipeline.commands.incidents import show_incidents
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.terminal.console import Console
from tests.golden_files import write_anew
from tests.paths import CAPTURES

FOLDER = Path(__file__).parent / "golden"
_WIDTH = 100


def captures() -> list[Path]:
    """All recordings of short incidents, and of health."""
    return sorted(CAPTURES.rglob("*.pcap"))


def judged(capture: Path) -> Diagnosis:
    """What is found in it."""
    return diagnose(read_inputs([str(capture)]), StreamSettings())


def told_of(found: Diagnosis, height: int | None = None) -> str:
    """What `wirelake diagnose` prints of it, with the query that shows each incident instead of commands.

    Args:
        found: what was judged.
        height: lines of the terminal; None: it is printed to a file.
    """
    is_terminal = height is not None
    console = Console(
        file=(out := StringIO()), width=_WIDTH, height=height, force_terminal=is_terminal, color_system=None
    )
    show_incidents(
        found.incidents.to_pylist(), found.findings.to_pylist(), lambda row: [row["sql"], row["page"]], console
    )
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def main() -> None:
    """Write all files again."""
    write_anew(((FOLDER / f"{capture.stem}.txt", told_of(judged(capture))) for capture in captures()), FOLDER)


if __name__ == "__main__":
    main()
