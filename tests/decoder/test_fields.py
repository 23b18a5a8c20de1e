"""Fields of parsed JSON that are missing, of another type or beyond what 64 bits hold."""

from __future__ import annotations

import json

import pytest

from decoder import fields

LARGEST = 2**63 - 1
ODD = [None, True, 1.5, "5", [], {}, [5], {"a": 5}, LARGEST + 1]


@pytest.mark.parametrize("value", ODD)
def test_what_is_no_whole_number_of_64_bits_is_not_known(value: object) -> None:
    assert fields.integer({"n": value}, "n") is None
    assert fields.natural({"n": value}, "n") is None
    assert fields.integers({"n": [value, 7]}, "n") == [7]


def test_whole_numbers_stay_up_to_the_ends_of_64_bits() -> None:
    assert [fields.integer({"n": one}, "n") for one in (-LARGEST - 1, -1, 0, LARGEST)] == [-LARGEST - 1, -1, 0, LARGEST]
    assert [fields.natural({"n": one}, "n") for one in (-LARGEST - 1, -1, 0, LARGEST)] == [None, None, 0, LARGEST]


def test_a_field_that_is_missing_is_not_known() -> None:
    assert fields.integer({}, "n") is fields.natural({}, "n") is fields.text({}, "n") is fields.flag({}, "n") is None
    assert fields.struct({}, "n") == {}
    assert fields.items(None, "n") == fields.integers(None, "n") == fields.texts({}, "n") == []


def test_only_whole_elements_of_an_array_are_kept() -> None:
    odd = {"n": [1, "a", None, {"b": 1}, [2], True]}
    assert fields.items(odd, "n") == [{"b": 1}]
    assert fields.integers(odd, "n") == [1]
    assert fields.texts(odd, "n") == ["a"]


@pytest.mark.parametrize("value", ["text", 5, {"a": 1}, None])
def test_what_is_no_array_has_no_elements(value: object) -> None:
    assert (
        fields.items({"n": value}, "n") == fields.integers({"n": value}, "n") == fields.texts({"n": value}, "n") == []
    )


@pytest.mark.parametrize("text", [None, "", "[1]", "5", "null", '{"cut', "\udcff"])
def test_a_text_without_an_object_is_an_empty_body(text: str | None) -> None:
    assert fields.parsed(text) == {}


def test_a_number_beyond_64_bits_in_a_text_is_not_known() -> None:
    assert fields.integer(fields.parsed(json.dumps({"n": 2**70})), "n") is None
    assert fields.as_int64(2**63) is None
    assert fields.as_int64(LARGEST) == LARGEST
