"""A coordinator that states less than it accepted last has lost commits, unless something else set them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.rules.kafka.positions.lost_commits import LOST_COMMITS
from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.kafka.positions.lost_stages import GROUP, restarted
from tests.pipeline.analysis.rules.kafka.positions.stage import DELETE_GROUPS, OFFSET_DELETE, Client, Stage

FINDING = ("offset_reset", f"{GROUP}/orders")


def of_lost_commits(stage: Stage) -> list[tuple[str, str]]:
    return [place for place, row in stage.findings().items() if row["details"].get("cause") == LOST_COMMITS]


def test_the_coordinator_is_named_with_what_is_read_again() -> None:
    row = restarted(commits=0).findings()[FINDING]
    assert (row["severity"], row["state"], row["partition"]) == ("warning", "ongoing", 0)
    assert row["summary"] == (
        "Coordinator 10.0.0.9:9092 states an older commit of group orders-app on orders-0 than was accepted: 60 at "
        "09:41:00 UTC, after 180 at 09:40:59 UTC, so that up to 120 records come again. No captured request set "
        "the group back: commits were lost, or a request that was not captured did it."
    )
    assert (
        "--group orders-app --topic orders:PARTITION --to-offset OFFSET --execute`; partition 0: 180)" in row["advice"]
    )
    assert len(row["evidence"]) == 2


def test_nobody_is_blamed_for_commits_that_go_on_from_there() -> None:
    found = restarted(commits=5, skips=1, seconds=66, stated=150).findings()
    assert found[FINDING]["state"] == "resolved"
    assert "it committed so far again" in found[FINDING]["summary"]
    slow = restarted(commits=0)
    slow.commit(70.7, Client("worker", GROUP, 42_001, "worker-2", generation=2), {0: 66})
    found = slow.findings()
    assert FINDING in found
    assert not {"commit_regressed", "rewound"} & {rule for rule, _ in found}


def test_several_partitions_are_one_finding() -> None:
    row = restarted(loses=2, commits=0).findings()[FINDING]
    assert "on orders-0 and 1 more partition than was accepted" in row["summary"]
    assert "up to 240 records come again" in row["summary"]
    assert "; partition 0: 180, partition 1: 180)" in row["advice"]


def test_a_tool_that_asks_sees_it_as_well() -> None:
    row = restarted(monitor=True, commits=0).findings()[FINDING]
    assert "would come again after a restart" in row["summary"]


def test_it_is_seen_by_who_comes_midway() -> None:
    assert of_lost_commits(restarted(commits=0).since(50)) == [FINDING]


@pytest.mark.parametrize("stage", [
    pytest.param(restarted(stated=180), id="the last commit"),
    pytest.param(restarted(stated=183), id="a commit that was not captured"),
    pytest.param(restarted(set_back=True), id="set back by a tool"),
    pytest.param(restarted(under_way=True), id="set back by a tool that is answered later"),
    pytest.param(restarted(deletes=OFFSET_DELETE), id="offsets deleted"),
    pytest.param(restarted(deletes=DELETE_GROUPS), id="group deleted"),
    pytest.param(restarted(stated=180, asked_before=True), id="asked before the commit was answered"),
    pytest.param(restarted(stated=-1), id="no commit at all, which offset_reset tells otherwise"),
    pytest.param(restarted().since(60), id="the commits are older than the capture"),
])  # fmt: skip
def test_what_else_explains_it_is_no_loss(stage: Stage) -> None:
    assert of_lost_commits(stage) == []


def test_a_group_of_that_name_in_another_cluster_is_another_group(tmp_path: Path) -> None:
    """Two clusters that nothing names, with a network each: the second group is behind the first one."""
    first, second = restarted(stated=180), restarted(stated=180).until(30).on("10.1.2.")
    later = Stage(_said=[(at + 70, *more) for at, *more in second._said], _servers=second._servers)  # type: ignore[misc]
    paths = [tmp_path / "first.pcap", tmp_path / "second.pcap"]
    for path, stage in zip(paths, (first, later), strict=True):
        path.write_bytes(stage.pcap())
    rows: list[dict[str, Any]] = finding_rows(diagnose(read_inputs([*map(str, paths)]), StreamSettings()).findings)
    assert LOST_COMMITS not in {json.loads(row["details"]).get("cause") for row in rows}
