"""With local times chosen, every time of every card, sentence and caption is local: none of them stays UTC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.commands.demo import SAMPLES
from pipeline.dashboard.sql import query
from pipeline.dashboard.web.zone import write_times_in
from tests.pipeline.dashboard.web.apps import text_of
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_streamlit

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

_OF_UTC = re.compile(r"(?<![\d:])(?:04:[45]\d|16:[23]\d):\d\d(?![\d:])")
"""What the samples recorded, at 04 and 16 o'clock UTC: 05 and 17 o'clock in Berlin."""
_PAGES = ("home", "findings", "partitions", "group", "transactions", "clients")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("samples") / "lake", *SAMPLES)


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    require_streamlit()
    import streamlit as st  # noqa: PLC0415 - not for Python 3.10

    monkeypatch.setattr(type(st.context), "timezone", property(lambda _: "Europe/Berlin"))
    yield
    write_times_in(None)


def _of_utc(use: Any, lake: Path, page: str, **address: str) -> list[str]:
    text = text_of(use(lake, page, range="all", times="local", **address)).replace("\\", "")
    assert "All times are Europe/Berlin." in text
    return [line for line in text.splitlines() if _OF_UTC.search(line) or "UTC" in line]


@pytest.mark.parametrize("page", _PAGES)
def test_all_times_of_a_page_are_local(use: Any, lake: Path, page: str) -> None:
    assert _of_utc(use, lake, page) == []


def test_all_times_of_an_incident_are_local(use: Any, lake: Path) -> None:
    for row in query(lake, "SELECT incident_id FROM gold.incidents ORDER BY urgency LIMIT 3").to_pylist():
        assert _of_utc(use, lake, "incident", incident=row["incident_id"]) == []
