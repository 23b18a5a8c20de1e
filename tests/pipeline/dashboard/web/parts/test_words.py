"""Times, durations and names as a person reads them."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.rule import all_rules, rule_named
from pipeline.dashboard.web.format import clock, code, plain, prose, seen
from pipeline.dashboard.web.parts.rules import rule_page, rule_title
from pipeline.humanize import duration, pluralize, size
from tests.pipeline.dashboard.conftest import at


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""), (0, "0 s"), (0.000_086, "86 µs"), (0.25, "250 ms"), (3.14159, "3.1 s"), (38.2, "38 s"),
        (59.7, "1 min"), (125, "2 min 5 s"), (3600, "1 h"), (3661, "1 h 1 min"), (277_300, "3 d 5 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("count", "words"), [(None, ""), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB")])
def test_sizes(count: int | None, words: str) -> None:
    assert size(count) == words


def test_times_name_the_day_once() -> None:
    assert clock(at(1)) == "2026-03-01 12:00:01"
    assert seen(at(1), at(39)) == "2026-03-01 12:00:01 to 12:00:39 UTC, 38 s"
    assert seen(at(0), at(86_400)) == "2026-03-01 12:00:00 to 2026-03-02 12:00:00 UTC, 1 d"


def test_counts_have_their_noun() -> None:
    assert [pluralize(1, "commit"), pluralize(2345, "commit"), pluralize(0, "query", "queries")] == [
        "1 commit",
        "2,345 commits",
        "0 queries",
    ]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a*b", r"a\*b"),
        ("[x](y)", r"\[x\]\(y\)"),
        ("see http://e.example/*, www.e.example", r"see `http://e.example/*,` `www.e.example`"),
        ("mail me@e.example", "mail `me@e.example`"),
        ("<b>&amp;", r"\<b\>\&amp\;"),
        (":red[x] $y$ `z`", r"\:red\[x\] \$y\$ \`z\`"),
        ("\x1b[2J\n", r"\\x1b\[2J\\n"),
    ],
)
def test_names_of_the_wire_are_no_markup(text: str, escaped: str) -> None:
    assert plain(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"), [("orders", "`orders`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("", "(empty)")]
)
def test_a_code_span_cannot_be_left(text: str, span: str) -> None:
    assert code(text) == span


def test_of_our_own_text_only_code_is_read() -> None:
    assert prose("end **it** with `a --b *`.") == r"end \*\*it\*\* with `a --b *`\."


@pytest.mark.parametrize("rule", [rule.name for rule in all_rules()])
def test_each_rule_has_its_page(rule: str) -> None:
    page = rule_page(rule)
    assert page is not None
    assert "**What to do.**" in page
    assert rule_title(rule) == rule_named(rule).title
    assert ".md)" not in page


def test_a_rule_is_no_path() -> None:
    assert rule_page("../privacy") is None
    assert rule_page("no_such_rule") is None
    assert rule_title("no_such_rule") == "no_such_rule"
