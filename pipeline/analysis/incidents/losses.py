"""What an incident cannot state for certain, since the capture lost bytes.

Nothing follows from silence where bytes were lost: a commit that was not seen may have been sent. The table of claims
(pipeline.analysis.claims) states which rules rest on silence, and on whose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.analysis.claims.table import silent_rules, wide_rules
from pipeline.analysis.rules.case.bundle import LEAST_LINGER_US
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import CLIENT, Known
from pipeline.analysis.rules.rule import rule_named

OF_CLIENTS = "The capture lost some bytes of these clients: figures may be too small."
OF_CLUSTER = "The capture lost some bytes of this cluster: what was not seen may have happened."
OF_UNKNOWN = "The capture lost some bytes of unknown connections: what was not seen may have happened."


def what_may_be_lost(case: Case, losses: Sequence[Known]) -> str:
    """The sentence about losses that concern an incident; empty if none do.

    Args:
        case: the incident.
        losses: all findings about what the capture lost.
    """
    if not losses or rule_named(case.tree.root.rule).is_of_capture:
        return ""
    clients = _clients(case.tree.findings)
    if any(clients & _clients([loss]) for loss in losses):
        return OF_CLIENTS
    rules = {one.rule for one in case.tree.findings}
    if rules.isdisjoint(silent_rules()):
        return ""
    near = [loss for loss in losses if _is_near(loss, case)]
    clusters = {str(one.row["cluster"]) for one in case.tree.findings}
    is_wide = not clients or not rules.isdisjoint(wide_rules())
    if any(loss.row["cluster"] in clusters and (is_wide or not _clients([loss])) for loss in near):
        return OF_CLUSTER
    return OF_UNKNOWN if any(not loss.row["cluster"] for loss in near) else ""


def _is_near(loss: Known, case: Case) -> bool:
    """Whether something that an incident rests on can have been lost: in its time, or since it is not over."""
    begun = loss.last_us >= case.first_us - LEAST_LINGER_US
    return begun and (case.state != "resolved" or loss.first_us <= case.last_us + LEAST_LINGER_US)


def _clients(findings: Iterable[Known]) -> set[tuple[str, ...]]:
    return {(str(one.row["cluster"]), *entity) for one in findings for entity in one.entities if entity[0] == CLIENT}
