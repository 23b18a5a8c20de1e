"""What ``wirelake top --once`` shows: ``python -m tests.pipeline.commands.top.golden`` writes it again.

Look at what changed (``git diff tests/pipeline/commands/top/golden``) before it is committed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rich.text import Text

from pipeline.commands.top.screen import Shown, screen
from pipeline.config.settings import StreamSettings
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.live_monitor import LiveMonitor, Snapshot
from pipeline.terminal.console import Console
from tests.golden_files import write_anew
from tests.paths import CAPTURES

FOLDER = Path(__file__).parent / "golden"
WIDTHS = (80, 120, 200)
WINDOW_US = 60_000_000
NAMES = (
    "stuck_commit.pcap", "healthy.pcap", "mongodb/troubled_mongodb.pcap", "rhythms/healthy_rhythms.pcap.zst",
    "rhythms/healthy_streams.pcap.zst", "rhythms/sick_members.pcap.zst",
)  # fmt: skip


@cache
def standing(name: str) -> Snapshot:
    """How all was at the end of a capture; a long one is read by the kernel, a short one as `make check` can."""
    landed = read_inputs([str(CAPTURES / name)])
    watch = LiveMonitor(StreamSettings(), WINDOW_US, by_kernel=name.startswith("rhythms/"))
    watch.add(landed.frames, landed.gaps)
    watch.judge()
    now = watch.now()
    assert now is not None
    return now


def drawn(now: Snapshot, shown: Shown, columns: int, height: int | None = None) -> str:
    """A screen as text, without styles."""
    console = Console(width=columns, height=height, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(screen(now, shown, columns, height))
    return captured.get()


def coloured(now: Snapshot, shown: Shown, columns: int) -> list[Text]:
    """The same with styles, line by line."""
    console = Console(width=columns, force_terminal=True, color_system="standard", _environ={})
    with console.capture() as captured:
        console.print(screen(now, shown, columns))
    return [Text.from_ansi(line) for line in captured.get().splitlines()]


def file_of(name: str, columns: int) -> Path:
    """Where it is kept."""
    return FOLDER / f"{Path(name).name.partition('.')[0]}.{columns}.txt"


def main() -> None:
    shown = ((name, columns) for name in NAMES for columns in WIDTHS)
    write_anew(((file_of(*one), drawn(standing(one[0]), Shown(one[0]), one[1])) for one in shown), FOLDER)


if __name__ == "__main__":
    main()
