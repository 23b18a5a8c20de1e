"""Each decision in docs/adr states its date and status, and the list in docs/adr/README.md has it."""

from __future__ import annotations

import re
from datetime import date

from tests.paths import ROOT

_FOLDER = ROOT / "docs" / "adr"
_PAGES = sorted(path for path in _FOLDER.glob("*.md") if path.name != "README.md")
_STATUS = re.compile(r"\A# .+\n\n\*(\d{4}-\d\d-\d\d)\. (Proposed|Accepted|Replaced by)\b[^\n]*\.\*\n")


def test_each_states_its_date_and_status() -> None:
    found = {path.name: _STATUS.match(path.read_text(encoding="utf-8")) for path in _PAGES}
    assert found
    assert [name for name, status in found.items() if status is None] == []
    dates = [date.fromisoformat(status[1]) for status in found.values() if status is not None]
    assert dates == sorted(dates), "numbers follow time"


def test_the_list_has_each_with_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (_FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    titles = [(path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# "), path.name) for path in _PAGES]
    assert listed == titles
