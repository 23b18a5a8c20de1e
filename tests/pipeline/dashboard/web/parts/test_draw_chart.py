"""What comes from the wire is on a page as what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pipeline
from tests.requirements import require_streamlit

_WEB = Path(pipeline.__file__).parent / "dashboard" / "web"
_DIRECT = re.compile(r"\bst\.(text|altair_chart)\(")
_PLACES = {_WEB / "page_context.py": ["text"], _WEB / "parts" / "draw_chart.py": ["altair_chart"]}


def test_a_text_cannot_turn_or_hide_characters() -> None:
    require_streamlit()
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415 - slow import

    def page() -> None:
        from pipeline.dashboard.web.page_context import draw_text  # noqa: PLC0415 - runs as a script of its own

        draw_text("app\u202egnillib sets **it** back", "second\x1b[31m")

    (shown,) = AppTest.from_function(page).run().text
    assert shown.value == "app\\u202egnillib sets **it** back\nsecond\\x1b[31m"


@pytest.mark.parametrize("file", sorted(_WEB.rglob("*.py")), ids=lambda file: str(file.relative_to(_WEB)))
def test_texts_and_charts_are_drawn_in_one_place(file: Path) -> None:
    assert _DIRECT.findall(file.read_text(encoding="utf-8")) == _PLACES.get(file, [])
