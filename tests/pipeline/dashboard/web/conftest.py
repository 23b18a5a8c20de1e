"""Pages are run in the process of the tests."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.dashboard.web.apps import open_page
from tests.requirements import require_streamlit

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest


collect_ignore = (
    [] if find_spec("streamlit") else ["browser", "parts/test_answer_files.py", "pictures/test_rule_pictures.py"]
)
"""Of the modules below: what loads Streamlit, or what comes with it, at once. There is none for Python 3.10."""


@pytest.fixture(autouse=True)
def _main_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit puts a page in the place of ``__main__``, which processes that are started later would run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Open a page of a lake; whatever it raises fails the test."""
    require_streamlit()

    def opened(lake: Path, page: str, **parameters: str) -> AppTest:
        monkeypatch.setenv("WIRELAKE_LAKE", str(lake))
        return open_page(page, **parameters)

    return opened
