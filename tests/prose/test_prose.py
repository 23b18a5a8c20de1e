"""Each rule of the vocabulary refuses one sentence and accepts another; what is no prose is not looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import texts
from tests.prose.__main__ import broken
from tests.prose.checks import STOCK, Rule, places, vocabulary

_STOCK = {
    "archaism": ("Rows stay for ever.", "Rows stay forever."),
    "hedging": ("It is fast, so to speak.", "It is fast."),
    "malapropisms": ("The Infinitesimal Universe of tables.", "The small world of tables."),
    "mondegreens": ("For all intensive purposes.", "For all intents and purposes."),
    "nonwords": ("Irregardless of the order.", "Regardless of the order."),
    "oxymorons": ("An exact estimate of the lag.", "An estimate of the lag."),
    "redundancy": ("An ATM machine.", "An ATM."),
}


@pytest.mark.parametrize("rule", vocabulary(), ids=lambda rule: rule.rule)
def test_each_rule_refuses_and_accepts(rule: Rule) -> None:
    refused = [place.rule for place in places(rule.refuses, names=rule.names)]
    assert f"wirelake.{rule.rule}" in refused
    assert list(places(rule.accepts, names=rule.names)) == []
    assert list(places(rule.prefer)) == []


@pytest.mark.parametrize("name", STOCK)
def test_each_check_of_proselint_refuses_and_accepts(name: str) -> None:
    refuses, accepts = _STOCK[name]
    assert {place.rule.split(".")[0] for place in places(refuses)} & {name}
    assert list(places(accepts)) == []


def test_rules_have_names_of_their_own() -> None:
    names = [rule.rule for rule in vocabulary()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""Made anew."""\n', [1]),
        ("x = 1\nprint(f'of {x} made anew')\n", [2]),
        ("raise Error(\n    'asked in '\n    'vain'\n)\n", [2]),
        ("x = 1  # goes\n# on\n", [1]),
        ("anew = b'anew'\n", []),
        ("'``anew`` and `anew` and {anew}'  # noqa: anew\n", []),
        ("f'{row[\"anew\"]}'\n", []),
    ],
)
def test_prose_of_python_is_strings_and_comments(text: str, lines: list[int]) -> None:
    assert [place.line for place in places(texts.python(text))] == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Made\n\nanew\n", [3]),
        ("| a | made anew |\n", [1]),
        ("[made anew](x.md)\n", [1]),
        ("```console\nmade anew\n```\n", []),
        ("Of `anew` and [x](anew.md) and <a href='anew'>x</a>.\n", []),
        ("<!-- anew -->\n", []),
        ("Asked in\n\nvain hope.\n", []),
    ],
)
def test_prose_of_markdown_is_what_is_no_code(text: str, lines: list[int]) -> None:
    assert [place.line for place in places(texts.markdown(text))] == lines


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.yaml", "key: anew    # made anew\n", 1),
        ("a.toml", '# made anew\nanew = "anew"\n', 1),
        ("Makefile", "anew: ## Made anew\n\techo anew\n", 1),
        ("a.json", '{"anew": "anew"}\n', 0),
    ],
)
def test_of_settings_and_scripts_comments_are_read(tmp_path: Path, name: str, text: str, found: int) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(list(places(texts.read(tmp_path / name)))) == found


def test_a_file_is_named_with_line_and_rule() -> None:
    file = Path(__file__).parent / "vocabulary.yaml"
    assert list(broken([file])) == [], "it names what is to be avoided"
    assert all(": wirelake." not in line for line in broken([file.parents[2] / "CONTRIBUTING.md"]))
