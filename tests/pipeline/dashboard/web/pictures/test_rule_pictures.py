"""Each rule's page has a picture, and each incident too, whatever it is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.rules.rule import all_rules
from pipeline.dashboard.charts import finding_chart
from pipeline.dashboard.queries.overview.proof import ConnectionSeen, proof
from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.sql import connect, query
from pipeline.dashboard.web.parts.rules import rule_page
from pipeline.errors import UserError
from tests.pipeline.dashboard.web.pictures.rule_pictures import FOLDER, PAGES, with_picture
from tests.pipeline.lakes import diagnosed_lake

_MOST_BYTES = 80_000
_RULES = [rule.name for rule in all_rules()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Incidents about partitions, groups, clients and brokers, and of MongoDB."""
    names = ("incidents/evicted", "incidents/refused", "mongodb/troubled_mongodb")
    return diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", *names)


@pytest.mark.parametrize("rule", _RULES)
def test_the_page_of_a_rule_has_a_picture(rule: str) -> None:
    page = (PAGES / f"{rule}.md").read_text(encoding="utf-8")
    (alt, target) = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", page)[0]
    assert alt.startswith(f"What {rule} looks like, from the recording ")
    picture = (PAGES / target).resolve()
    assert picture == FOLDER / f"{rule}.png"
    assert 1_000 < picture.stat().st_size < _MOST_BYTES
    assert with_picture(page, rule, alt.rpartition(" ")[2]) == page
    assert "![" not in (rule_page(rule) or "")


def test_no_picture_is_of_a_rule_that_is_gone() -> None:
    assert {file.stem for file in FOLDER.glob("*.png")} == set(_RULES)


def test_every_finding_with_evidence_is_shown(lake: Path) -> None:
    kinds = set()
    found = query(lake, "SELECT * FROM gold.findings WHERE len(evidence) > 0").to_pylist()
    with connect(lake) as connection:
        for row in found:
            shown = proof(connection, row, row["evidence"])
            assert shown is not None, row["summary"]
            kinds.add(type(shown))
    assert kinds == {Offsets, GroupSeen, ConnectionSeen}


def test_a_chart_shows_a_finding(lake: Path) -> None:
    found = query(lake, "SELECT finding_id, rule FROM gold.findings").to_pylist()
    chosen = {row["rule"]: row["finding_id"] for row in found}
    for rule in ("commit_rejected", "rebalance_storm", "mongo_slow_command"):
        assert finding_chart(lake, chosen[rule], width=300).to_dict()["vconcat"]
    with pytest.raises(UserError, match="there is no finding 'gone'"):
        finding_chart(lake, "gone")


@pytest.mark.slow
def test_the_page_of_an_incident_shows_its_partition_group_or_connection(use: Any, lake: Path) -> None:
    rules = {"rebalance_storm", "poll_interval_exceeded", "mongo_slow_command", "join_refused"}
    found = query(lake, "SELECT incident_id, rule FROM gold.incidents").to_pylist()
    chosen = {row["rule"]: row["incident_id"] for row in found if row["rule"] in rules}
    assert len(chosen) > 1
    for incident_id in chosen.values():
        app = use(lake, "incident", incident=incident_id)
        assert app.get("vega_lite_chart")
        assert "Look closer" in [one.proto.label for one in app.get("page_link")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capture", "rule", "pictures", "address"),
    [
        ("share_groups", "stopped", 1, "share=orders-0"),
        ("unsure_writers", "duplicate_write", 2, "exchange="),
    ],
)
def test_the_page_of_an_incident_shows_a_share_group_or_two_connections(
    use: Any, tmp_path: Path, capture: str, rule: str, pictures: int, address: str
) -> None:
    lake = diagnosed_lake(tmp_path / "lake", f"incidents/{capture}")
    found = query(lake, "SELECT incident_id, rule FROM gold.incidents").to_pylist()
    app = use(lake, "incident", incident=next(row["incident_id"] for row in found if row["rule"] == rule))
    closer = [one.proto for one in app.get("page_link") if one.proto.label == "Look closer"]
    assert len(closer) == pictures
    assert all(address in one.query_string for one in closer)
    assert len(app.get("vega_lite_chart")) >= pictures
