"""Pages are run in the process of the tests."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _main_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit puts a page in the place of ``__main__``, which processes that are started later would run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
