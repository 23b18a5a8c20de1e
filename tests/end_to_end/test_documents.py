"""Do documents show what is printed when their commands are typed in?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import Shown, differences, printed, shown_in
from tests.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md"])
def test_commands_print_what_the_document_shows(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    shown = list(shown_in((ROOT / document).read_text(encoding="utf-8")))
    assert shown
    for one in shown:
        assert differences(one, printed(one.command, tmp_path)) == [], one.command


def test_what_differs() -> None:
    out = ["a", "b", "", "c"]
    assert differences(Shown("", ("a", "b", "", "c")), out) == []
    assert differences(Shown("", ("…", "b", "…")), out) == []
    assert differences(Shown("", ("a", "…", "c")), out) == []
    assert differences(Shown("", ("a", "c")), out) == ["c"]
    assert differences(Shown("", ("…", "b")), out) == ["", "c"]
    assert differences(Shown("", ("…", "c", "…", "a")), out) == ["a"]
