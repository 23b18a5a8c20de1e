"""Data Docs open offline: each page is whole by itself, asks no host, and holds what failed with its query."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.quality.docs import check_folder
from pipeline.quality.runner import run_checks
from pipeline.tables import FINDINGS, INCIDENTS
from tests.pipeline.lakes import diagnosed_lake


class References(HTMLParser):
    """What a page loads or leads to, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data Docs of a lake whose findings are gone, and one of whose incidents has a state that does not exist."""
    base = tmp_path_factory.mktemp("docs")
    lake = diagnosed_lake(base / "lake", "stuck_commit")
    DeltaTable(str(lake / FINDINGS.path)).delete()
    DeltaTable(str(lake / INCIDENTS.path)).update({"state": "'ended'"})
    run_checks(None, lake, docs=base / "docs")
    return base / "docs"


def test_no_page_asks_a_host(folder: Path) -> None:
    pages = list(folder.iterdir())
    assert {path.suffix for path in pages} == {".html"}
    assert len(pages) > 20
    for path in pages:
        page = path.read_text(encoding="utf-8")
        found = References(page)
        assert not found.tags & {"script", "link", "img", "iframe", "object", "embed"}, path
        assert not re.search(r"https?:|url\(|@import", page), path
        for link in found.links:
            assert link.startswith("#") or (folder / link).is_file(), (path, link)


def test_the_first_page_names_what_failed_and_the_query_that_lists_it(folder: Path) -> None:
    page = References((folder / "index.html").read_text(encoding="utf-8"))
    assert "gold.incidents.html" in page.links
    assert "state is one of ongoing, unknown, resolved" in page.text
    assert "wirelake sql" in page.text
    assert "members_are_findings" not in page.text
    assert "all that an incident counts as its findings are findings; found all: 0 of" in page.text
    assert "not judged: the stream has not noted all of its batches" in page.text


def test_a_table_has_its_expectations_and_what_others_state_of_it(folder: Path) -> None:
    page = References((folder / "gold.incidents.html").read_text(encoding="utf-8"))
    assert "index.html" in page.links
    for text in (
        "critical: the table has every column of the registry",
        "critical: state is one of ongoing, unknown, resolved",
        "critical: the root of each incident is a finding; found all: 0 of",
        'wirelake sql \'FROM gold.incidents WHERE "state" NOT IN (',
    ):
        assert text in page.text


def test_a_second_run_takes_the_place_of_the_first(folder: Path, tmp_path: Path) -> None:
    (folder / "gold.gone.html").write_text("an older one")
    run_checks(None, diagnosed_lake(tmp_path / "lake", "stuck_commit"), docs=folder)
    assert not (folder / "gold.gone.html").exists()
    assert "0 failed" in (folder / "index.html").read_text(encoding="utf-8")


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    check_folder(tmp_path / "not-there-yet")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        check_folder(tmp_path)
    (tmp_path / "index.html").write_text("<h1>mine</h1>")
    with pytest.raises(UserError, match="holds other files"):
        check_folder(tmp_path)
    with pytest.raises(UserError, match="is a file"):
        check_folder(tmp_path / "mine.txt")


def test_the_command_refuses_before_it_checks(tmp_path: Path) -> None:
    lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
    (tmp_path / "mine.txt").write_text("mine")
    outcome = CliRunner().invoke(app, ["check", "--lake", str(lake), "--docs", str(tmp_path)])
    assert outcome.exit_code != 0
    assert isinstance(outcome.exception, UserError)
