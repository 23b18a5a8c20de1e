"""A table whose rows can be selected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.paths import ROOT
from tests.requirements import require_streamlit


@pytest.fixture(autouse=True)
def _streamlit() -> None:
    require_streamlit()


def _script() -> None:
    import streamlit as st  # noqa: PLC0415 - a script of its own

    from pipeline.dashboard.web.parts.grid import Column, grid  # noqa: PLC0415

    chosen = grid(st.session_state["rows"], [Column("name", "name")], key="names", opens="its name")
    st.text("none" if chosen is None else st.session_state["rows"][chosen]["name"])


def test_a_selection_ends_when_the_rows_change() -> None:
    from streamlit.proto.WidgetStates_pb2 import WidgetState  # noqa: PLC0415 - needs Streamlit
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415

    def run(names: str, selected: dict[str, str]) -> Any:
        app.session_state["rows"] = [{"name": name} for name in names]
        states = app._tree.get_widget_states()
        states.widgets.extend(WidgetState(id=key, string_value=value) for key, value in selected.items())
        app._run(states)
        return app.text[0].value

    app = AppTest.from_function(_script)
    assert run("abc", {}) == "none"
    selected = {app.dataframe[0].proto.id: '{"selection": {"rows": [1], "columns": [], "cells": []}}'}
    assert run("abc", selected) == "b"
    assert run("abc", selected) == "b"
    assert run("xabc", selected) == "none"


def test_keys_that_select_a_row_are_named_below_the_table() -> None:
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415

    app = AppTest.from_function(_script)
    app.session_state["rows"] = [{"name": "a"}]
    (caption,) = app.run().caption
    assert caption.value.startswith("Select a row to see its name: ")
    assert "Shift+Space" in caption.value


def test_no_page_says_by_itself_how_a_row_is_selected() -> None:
    pages = ROOT / "pipeline" / "dashboard" / "web" / "page"
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages.rglob("*.py")}
    assert [name for name, text in texts.items() if "Select a row" in text or "Shift+Space" in text] == []
