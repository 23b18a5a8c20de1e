"""Lists the fields in which two messages differ."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dashboard.queries.traffic.differences import Difference, differences


def told(left: Any, right: Any) -> list[tuple[str, str]]:
    return [(one.path, one.kind) for one in differences(left, right)]


def test_fields_are_told_in_the_order_of_the_message_and_numbers_with_their_change() -> None:
    assert differences({"a": 1, "b": "x", "c": None}, {"b": "y", "a": 5, "d": True}) == [
        Difference("a", 1, 5, "changed", 4),
        Difference("b", "x", "y", "changed"),
        Difference("c", None, None, "left only"),
        Difference("d", None, True, "right only"),
    ]


def test_partitions_are_compared_with_those_of_the_same_number_in_whatever_order() -> None:
    def commit(*offsets: tuple[int, int]) -> Any:
        partitions = [{"partitionIndex": index, "committedOffset": offset} for index, offset in offsets]
        return {"topics": [{"name": "payments", "partitions": partitions}]}

    found = differences(commit((0, 5), (2, 24)), commit((2, 20), (1, 7), (0, 5)))
    assert [(one.path, one.kind, one.change) for one in found if one.path.endswith("committedOffset")] == [
        ("topics[payments].partitions[0].committedOffset", "same", None),
        ("topics[payments].partitions[2].committedOffset", "changed", -4),
        ("topics[payments].partitions[1].committedOffset", "right only", None),
    ]


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ([1, 2], [1, 3, 4], [("[0]", "same"), ("[1]", "changed"), ("[2]", "right only")]),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a"}], [("[0].name", "same"), ("[1].name", "left only")]),
        ([], [], [("", "same")]),
        ({"a": {}}, {"a": {}}, [("a", "same")]),
        ({"a": []}, {"a": [1]}, [("a[0]", "right only")]),
        ({"a": {}}, {}, [("a", "left only")]),
        ({"a": 1}, {"a": [1]}, [("a", "changed")]),
        ({"a": 1}, {"a": True}, [("a", "changed")]),
        ({"a": 1}, {"a": 1.0}, [("a", "changed")]),
        ({}, {"a": {"b": 1}}, [("a.b", "right only")]),
        (None, {"a": 1}, [("", "changed")]),
    ],
)
def test_values_of_any_shape(left: Any, right: Any, found: list[tuple[str, str]]) -> None:
    assert told(left, right) == found


def test_what_is_the_same_has_no_difference_and_what_is_turned_round_turns_the_kinds() -> None:
    one, other = {"a": [{"id": 1, "x": [1, {"y": 2}]}]}, {"a": [{"id": 1, "x": [1]}, {"id": 2}]}
    assert {each.kind for each in differences(one, one)} == {"same"}
    turned = {"left only": "right only", "right only": "left only"}
    there, back = dict(told(one, other)), dict(told(other, one))
    assert {path: turned.get(kind, kind) for path, kind in there.items()} == back


def test_a_value_nested_without_end_is_compared_as_a_whole() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert [one.kind for one in differences(deep, deep)] == ["same"]
