"""Kafka's apis and errors go by their names in the source, not by their numbers."""

from __future__ import annotations

import re

import pytest

from tests.house import python_files
from tests.paths import ROOT

_BARE_API = re.compile(r"\bapi_key\s*(?:=|==|<>|!=|(?:NOT\s+)?IN\s*\(|(?:not\s+)?in\s*[\[({])\s*\d", re.IGNORECASE)
_BARE_ERROR = re.compile(r"\berror_codes?\s*(?:(?:=|==|<>|!=|IN\s*\(|in\s*[\[({])|,)\s*-?[1-9]", re.IGNORECASE)
"""0 is no error, in Kafka's own text too."""


def _is_bare(line: str) -> bool:
    return bool(_BARE_API.search(line) or _BARE_ERROR.search(line))


def test_apis_and_errors_go_by_their_names() -> None:
    files = {
        name: text for name, text in python_files(ROOT).items() if name.startswith(("decoder", "pipeline", "wirelake"))
    }
    assert files
    assert [(name, line) for name, text in files.items() for line in text.splitlines() if _is_bare(line)] == []


@pytest.mark.parametrize(
    ("line", "is_bare"),
    [
        ("WHERE api_key = 11", True),
        ("x.api_key IN (11, 68)", True),
        ("row.api_key not in {1, 2}", True),
        ("list_contains(error_codes, 58)", True),
        ("WHERE error_code = 27", True),
        ("error_code <> -1", True),
        ("error_code = 0", False),
        ("api_key = {ApiKey.JOIN_GROUP}", False),
        ("coalesce(api_key, -1)", False),
        ("rows.api_key >= 0", False),
    ],
)
def test_a_bare_number_is_found(line: str, *, is_bare: bool) -> None:
    assert _is_bare(line) is is_bare
