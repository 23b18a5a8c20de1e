"""Texts that incidents of MongoDB commands share."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case
from pipeline.humanize import listed


def command(case: Case) -> str:
    """Commands and their namespaces."""
    commands = sorted({str(one.row["subject"]).rpartition("/")[2] for one in case.bundle.findings})
    return f"{listed(commands)} on {namespace(case)}"


def namespace(case: Case) -> str:
    """Namespaces."""
    return listed(sorted({str(one.row["subject"]).rpartition("/")[0] for one in case.bundle.findings}))


def counts(case: Case) -> tuple[int, int]:
    """How many of how many that were sent."""
    stated = [(one.details.get("failed"), one.details.get("sent")) for one in case.bundle.findings]
    known = [(failed, sent) for failed, sent in stated if isinstance(failed, int) and isinstance(sent, int)]
    return sum(failed for failed, _ in known), sum(sent for _, sent in known)


def share(case: Case) -> str:
    """How often of how many times."""
    failed, sent = counts(case)
    return f"{failed:,} of {sent:,} times" if failed < sent else "each time"
