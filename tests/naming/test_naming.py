"""Things have the field's names (docs/glossary.md); Kafka's apis and errors have their own."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.house import python_files
from tests.naming.words import TALK, Place, bare_numbers, talking
from tests.paths import ROOT

HOUSES = ("decoder", "pipeline", "wirelake")
_PLAIN = "a sentence for whoever reads a finding, in plain English"
_KEY = "a key or a value of details, which readers rely on"
_ALLOWED = {
    ("pipeline/analysis/rules/kafka/groups/zombie_member.py", "it was told so with each answer."): _PLAIN,
    ("pipeline/analysis/rules/capture/capture_loss.py", "what is said of them is incomplete"): _PLAIN,
    ("pipeline/analysis/rules/kafka/share_groups/share_groups.py", "nothing was heard of its members"): _PLAIN,
    ("pipeline/analysis/rules/kafka/rebalances/slow_rebalance.py", "the process is told to end"): _PLAIN,
    ("pipeline/analysis/rules/kafka/progress/lagging.py", "its coordinator was heard last"): _PLAIN,
    ("pipeline/analysis/rules/kafka/progress/words.py", "--members` tells who is still"): _PLAIN,
    ("pipeline/analysis/rules/kafka/share_groups/share_groups.py", '(last.what or 0, "told of")'): _KEY,
    ("pipeline/analysis/rules/kafka/share_groups/share_groups.py", "'was told of')"): _KEY,
    ("pipeline/analysis/rules/kafka/share_groups/share_groups.py", "words.get(end, 'told of')"): _KEY,
    ("pipeline/analysis/rules/kafka/progress/lagging.py", '"heard_us": min('): _KEY,
    ("pipeline/analysis/rules/kafka/progress/words.py", 'figures.get("heard_us")'): _KEY,
}  # fmt: skip
"""Files and parts of their lines in which such a word stays, and why."""
_FILES = {path: text for path, text in python_files(ROOT).items() if path.startswith(HOUSES)}


def _is_allowed(place: Place) -> bool:
    return any(place.path == path and part in place.line for path, part in _ALLOWED)


@pytest.mark.parametrize("house", HOUSES)
def test_nobody_talks_in_the_source(house: str) -> None:
    texts = {path: text for path, text in _FILES.items() if PurePosixPath(path).parts[0] == house}
    assert texts
    found = [(place, word) for path, text in texts.items() for place, word in talking(path, text)]
    assert [f"{place.path}:{place.number}: {word}" for place, word in found if not _is_allowed(place)] == []


def test_what_is_allowed_is_there() -> None:
    lines = {path: text.splitlines() for path, text in _FILES.items()}
    assert [key for key in _ALLOWED if not any(key[1] in line for line in lines.get(key[0], ()))] == []


def test_apis_and_errors_go_by_their_names() -> None:
    assert [place for path, text in _FILES.items() for place in bare_numbers(path, text)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def told_of(): ...", ["told"]),
        ("class SaidSo: ...", ["said"]),
        ("_heardUs = 1", ["heard"]),
        ("x = 1  # nobody tells", ["tells"]),
        ('"""One line.\n\nAnother, which we\nHear.\n"""', ["hear"]),
        ("x = f'{told} of {y}'", ["told"]),
        ("QUERY = 'WITH told AS (SELECT 1) SELECT * FROM told'", ["told"]),
        ("def shear(retold): ...\nteller = intellect", []),
    ],
)
def test_a_word_is_found_wherever_it_stands(text: str, words: list[str]) -> None:
    assert [word for _, word in talking("pipeline/one.py", text)] == words
    assert set(words) <= TALK


def test_a_word_is_found_in_the_name_of_a_file() -> None:
    assert [place.number for place, _ in talking("pipeline/embedded/told.py", "")] == [0]
    assert list(talking("pipeline/embedded/streaming_diagnoser.py", "")) == []


@pytest.mark.parametrize(
    ("text", "is_bare"),
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
def test_a_bare_number_is_found(text: str, *, is_bare: bool) -> None:
    assert len(list(bare_numbers("pipeline/one.py", text))) == is_bare
