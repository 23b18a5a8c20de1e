"""What rests on silence is uncertain where bytes were lost that could have shown it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.incidents.losses import OF_CLIENTS, OF_CLUSTER, OF_UNKNOWN
from pipeline.analysis.incidents.report import CERTAIN, LIKELY
from tests.pipeline.analysis.incidents.made import found

REFUSED = found("produce_refused", "t/app", topic="t", client_id="app", records_lost=3)
POISON = found("poison_record", "g/t-0", group="g", topic="t", partition=0, clients="app at h")
THROTTLED = found("throttled", "app", clients=["app at h"])


def loss(cluster: str = "k", begin: float = 0, *names: str) -> dict[str, Any]:
    return found("capture_loss", "a/b:1", begin, cluster=cluster, client_ids=list(names))


@pytest.mark.parametrize(
    ("row", "lost", "reason"),
    [
        pytest.param(REFUSED, loss("k", 0, "app"), OF_CLIENTS, id="of its client"),
        pytest.param(REFUSED, loss("k", 0, "other"), "", id="of another client"),
        pytest.param(REFUSED, loss("k"), OF_CLUSTER, id="of a client that is not known"),
        pytest.param(REFUSED, loss("elsewhere"), "", id="of another cluster"),
        pytest.param(REFUSED, loss(""), OF_UNKNOWN, id="of any connection"),
        pytest.param(REFUSED, loss("", -90), "", id="long before"),
        pytest.param(REFUSED, loss("", 900), OF_UNKNOWN, id="since, while it is open"),
        pytest.param(REFUSED | {"state": "resolved"}, loss("", 900), "", id="long after it was over"),
        pytest.param(POISON, loss("k", 0, "other"), OF_CLUSTER, id="of a member that a group does not name"),
        pytest.param(THROTTLED, loss(""), "", id="of what needs no silence"),
    ],
)
def test_a_loss_weakens_what_could_have_been_seen_in_it(row: dict[str, Any], lost: dict[str, Any], reason: str) -> None:
    (incident,) = (one for one in grouped([row, lost]).incidents if one["rule"] == row["rule"])
    assert incident["confidence"] == (LIKELY if reason else CERTAIN)
    assert incident["reasoning"].endswith(reason)
    assert ("capture lost" in incident["reasoning"]) == bool(reason)
