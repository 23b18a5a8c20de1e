"""Prints what two findings make: `python -m tests.protocols.show_causes CAUSE EFFECT`, names of rules of any protocol.

Both are about one client; the second begins a second after the first.
"""

from __future__ import annotations

import sys

from pipeline.analysis.incidents.incidents import grouped
from tests.pipeline.analysis.incidents.made import found

CLIENT = "app at 10.0.0.7"


def main(cause: str, effect: str) -> None:
    """Print each incident: its root, and what follows from it."""
    rows = [
        found(cause, "cause", clients=[CLIENT], error="OOM"),
        found(effect, "effect", begin=1, clients=[CLIENT], error="OOM"),
    ]
    for incident in grouped(rows).incidents:
        print(*incident["rules"])


if __name__ == "__main__":
    main(*sys.argv[1:])
