"""Prints of each incident of a lake what grows and what proves it: `python -m tests.protocols.show_trend LAKE`.

As a process of its own, in which a package of a protocol is installed.
"""

from __future__ import annotations

import sys

from pipeline.dashboard.queries.overview.proof import ConnectionSeen, proof
from pipeline.dashboard.queries.overview.trends import trends
from pipeline.dashboard.queries.scope import ask_rows
from pipeline.dashboard.sql import connect


def main() -> None:
    """Print a line for each incident."""
    with connect(sys.argv[1]) as connection:
        incidents = ask_rows(connection, "SELECT * FROM gold.incidents ORDER BY incident_id")
        grows = dict(trends(connection, incidents))
        for row in ask_rows(connection, "SELECT * FROM gold.findings ORDER BY finding_id"):
            trend, shown = grows[row["incident_id"]], proof(connection, row, row["evidence"])
            assert isinstance(shown, ConnectionSeen)
            marked = [step.words for step in shown.steps.steps if step.exchange_id in shown.evidence]
            print(row["rule"], trend.kind, trend.points[-1][1], "; ".join(marked), sep=" | ")


if __name__ == "__main__":
    main()
