"""Figures as people say them."""

from __future__ import annotations

from pipeline.humanize import pluralize


def test_one_and_many() -> None:
    assert [pluralize(number, "record") for number in (1, 2)] == ["1 record", "2 records"]
    assert pluralize(2, "fetch", "fetches") == "2 fetches"


def test_what_no_64_bits_hold_is_no_figure() -> None:
    assert pluralize(2**63 - 1, "record") == f"{2**63 - 1:,} records"
    assert pluralize(2**63, "record") == "more records than 64 bits can count"
