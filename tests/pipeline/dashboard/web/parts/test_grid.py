"""Tables: rows that are links, text that is text, columns that are as wide as what they hold."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.pipeline.dashboard.conftest import HOSTILE
from tests.pipeline.dashboard.web.apps import frames, row_links
from tests.pipeline.rows import T0
from tests.requirements import require_streamlit


@pytest.fixture(autouse=True)
def _streamlit() -> None:
    require_streamlit()


def _script() -> None:
    import streamlit as st  # noqa: PLC0415 - a script of its own

    from pipeline.dashboard.web.parts.grid import Column  # noqa: PLC0415
    from pipeline.dashboard.web.parts.table import table  # noqa: PLC0415

    columns = [Column("name", "name"), Column("count", "count", "number"), Column("ts", "seen", "time"),
               Column("nothing", "nothing")]  # fmt: skip
    table(
        st.session_state["rows"], columns, name="Names",
        to=lambda row: ("group", {"group": row["name"], "cluster": None}),
        muted=lambda row: row["count"] == 0,
    )  # fmt: skip


def _drawn(rows: list[dict[str, Any]]) -> tuple[Any, str]:
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415 - slow import

    app = AppTest.from_function(_script)
    app.session_state["rows"] = rows
    app.run()
    (element,) = app.get("html")
    return app, element.proto.body


def _row(name: str, count: int | None = 1, seconds: float = 0) -> dict[str, Any]:
    return {"name": name, "count": count, "ts": T0 + timedelta(seconds=seconds), "nothing": None}


def test_a_row_leads_to_its_page() -> None:
    app, _ = _drawn([_row("a&b"), _row("c d")])
    assert row_links(app) == ["/group?group=a%26b", "/group?group=c+d"]
    assert [(row["name"], row["count"]) for row in frames(app)[0]] == [("a&b", 1), ("c d", 1)]


def test_a_name_of_the_wire_is_text() -> None:
    app, body = _drawn([_row(HOSTILE), _row('"><img src=x onerror=alert(1)>')])
    assert "<b>" not in body
    assert "<img" not in body
    assert frames(app)[0][0]["name"] == HOSTILE


def test_a_column_that_is_empty_is_left_out_and_a_date_stands_once() -> None:
    app, body = _drawn([_row("a", 1, 1.25), _row("b", None, 2)])
    assert list(frames(app)[0][0]) == ["name", "count", "seen"]
    assert body.count("2026-03-01") == 1  # in the heading
    assert ">12:00:01.250</td>" in body.replace("</td>", "</td>")
    _, body = _drawn([_row("a"), _row("b", 1, 86_400)])
    assert ">2026-03-02 12:00:00.000 UTC<" in body


def test_what_is_expected_is_fainter() -> None:
    _, body = _drawn([_row("a", 0), _row("b", 1)])
    assert body.count("class=muted") == 1
