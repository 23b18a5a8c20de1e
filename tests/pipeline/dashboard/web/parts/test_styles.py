"""A report for Slack and as plain text: names of the wire stay text there, too."""

from __future__ import annotations

import pytest

from pipeline.dashboard.web.parts.styles import Markdown, Plain, Slack


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("snake_case_name and __consumer_offsets", "snake_case_name and __consumer_offsets"),
        ("*bold* 1 * 2", "`*bold*` 1 `*` 2"),
        ("_emphasis_ a_b", "`_emphasis_` a_b"),
        ("~gone~ `code`", "`~gone~` `'code'`"),
        ("<b>x</b> & <@U1>", "&lt;b&gt;x&lt;/b&gt; &amp; &lt;@U1&gt;"),
    ],
)
def test_in_slack_only_what_would_format_is_code(text: str, written: str) -> None:
    assert Slack().text(text) == written


def test_in_slack_a_heading_leads_to_its_page_and_names_nobody() -> None:
    assert Slack().heading("a|b <!channel>", "https://x.example/i?incident=1") == (
        "*<https://x.example/i?incident=1|a¦b &lt;!channel&gt;>*"
    )
    assert Slack().heading("group g", "") == "*group g*"
    assert Slack().block("a ``` b") == ["```", "a  b", "```"]


def test_plain_text_has_no_signs_of_ours() -> None:
    assert Plain().prose("Set `max.poll.interval.ms` to 5") == "Set max.poll.interval.ms to 5"
    assert Plain().heading("x", "https://x.example") == "x\nhttps://x.example"
    assert Plain().code("") == "(empty)"


def test_markdown_has_the_heading_as_a_link() -> None:
    assert Markdown().heading("[x]", "https://x.example") == r"## [\[x]](<https://x.example>)"
