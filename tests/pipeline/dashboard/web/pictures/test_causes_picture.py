"""What follows from what, as a graph."""

from __future__ import annotations

from typing import Any

from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.pictures.causes_picture import causes_picture, in_words, nodes


def _finding(
    name: str, rule: str, cause: str | None = None, because: str = "", *, effect: bool = True
) -> IncidentFinding:
    finding: dict[str, Any] = {"finding_id": name, "rule": rule, "subject": f"about {name}", "summary": "seen"}
    return IncidentFinding(finding, 0, because if effect else "", cause, cause is not None and effect)


CHAIN = [
    _finding("a", "stuck_commit"),
    _finding("b", "competing_committers", "a", "it is committed over"),
    _finding("c", "commit_regressed", "b", "it falls back"),
]


def test_a_chain_of_causes_has_a_level_for_each() -> None:
    graph = nodes(CHAIN)
    assert [(node.rule, node.parent, node.level) for node in graph] == [
        ("stuck_commit", None, 0), ("competing_committers", 0, 1), ("commit_regressed", 1, 2),
    ]  # fmt: skip
    assert in_words(graph) == (
        "stuck_commit, about a; competing_committers, about b follows from stuck_commit (it is committed over); "
        "commit_regressed, about c follows from competing_committers (it falls back)."
    )


def test_the_same_trouble_of_many_is_one_box() -> None:
    told = [_finding("a", "old"), *(_finding(f"a{n}", "old", "a", effect=False) for n in range(12))]
    told += [_finding("b", "format", "a3", "it is old"), _finding("c", "format", "a4", "it is old")]
    graph = nodes(told)
    assert [(node.about, node.parent) for node in graph] == [("about a and 12 more", None), ("about b and 1 more", 0)]


def test_what_is_not_there_any_more_leaves_no_gap() -> None:
    graph = nodes([CHAIN[0], CHAIN[2]])
    assert [(node.rule, node.parent) for node in graph] == [("stuck_commit", None), ("commit_regressed", None)]


def test_a_picture_has_a_box_for_each_node_and_a_click_names_its_finding() -> None:
    told = [*CHAIN, _finding("d", "lag_growing", "a", "nothing is committed")]
    drawn = causes_picture(nodes(told), dark=False).to_dict()
    boxes = [one for rows in drawn["datasets"].values() for one in rows if "left" in one]
    assert {box["finding"] for box in boxes} == {"a", "b", "c", "d"}
    beside = sorted((box["left"], box["right"]) for box in boxes if box["level"] == 1)
    assert beside[0][1] < beside[1][0]  # none lies over another
    assert [one["name"] for one in drawn["params"]] == ["open"]


def test_a_single_finding_is_drawn_too() -> None:
    assert causes_picture(nodes(CHAIN[:1]), dark=True).to_dict()["height"] > 0
