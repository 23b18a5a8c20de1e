"""The site is built with dead links and anchors as errors, and a browser needs no network to read it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from lunr import lunr

from tests.paths import ROOT
from website.build import SiteError, build
from website.moved import MOVED

pytestmark = pytest.mark.slow
_LOADED = re.compile(r"<(?:script|img|source|iframe|link)\b[^>]*?\b(?:src|srcset|href)=\"([^\"]+)\"")
SYMPTOMS = {
    "lag does not shrink": "lag-does-not-shrink",
    "commits do not move": "commits-do-not-move",
    "records are read again": "records-are-read-again",
    "fetches are empty": "fetches-are-empty",
    "group keeps rebalancing": "group-keeps-rebalancing",
    "latency rises": "latency-rises",
    "consumer does not connect": "client-does-not-connect",
    "login fails": "login-fails",
    "producer cannot write": "producer-cannot-write",
    "same error repeats": "same-error-repeats",
    "who breaks on Kafka 4": "who-breaks-on-kafka-4",
    "mongodb cursors": "mongodb-is-in-trouble",
    "nothing found": "nothing-was-found",
}
"""What somebody types into the search, and the page of it in ``docs/symptoms``."""
_NOT_LOADED = re.compile(r"<link\b[^>]*\brel=\"(?:canonical|next|prev|alternate)\"[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def test_it_has_each_document(site: Path) -> None:
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert documents
    for document in documents:
        page = document.with_suffix(".html") if document.name != "README.md" else document.with_name("index.html")
        assert (site / page).exists(), page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loaded = _LOADED.findall(_NOT_LOADED.sub("", page.read_text(encoding="utf-8")))
        assert loaded or str(page.relative_to(site)) in MOVED
        assert [one for one in loaded if one.startswith(("http:", "https:", "//"))] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.fixture(scope="module")
def search(site: Path) -> Callable[[str], str]:
    """The first hit of the site's search, by the index and the weights that its pages use."""
    documents = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    fields = [{"field_name": "title", "boost": 1000}, "text"]
    index = lunr(ref="location", fields=fields, documents=documents)
    return lambda asked: str(index.search(asked)[0]["ref"])


@pytest.mark.parametrize(("asked", "found"), SYMPTOMS.items())
def test_a_symptom_is_the_first_hit(search: Callable[[str], str], asked: str, found: str) -> None:
    assert search(asked) == f"symptoms/{found}.html"


def test_each_symptom_is_asked_for() -> None:
    assert {path.stem for path in (ROOT / "docs" / "symptoms").iterdir()} == set(SYMPTOMS.values())


@pytest.mark.parametrize("name", SYMPTOMS.values())
def test_a_symptom_leads_to_commands_rules_page_and_sql(name: str) -> None:
    text = (ROOT / "docs" / "symptoms" / f"{name}.md").read_text(encoding="utf-8")
    assert re.search(r"^wirelake diagnose ", text, re.MULTILINE)
    assert re.search(r"^\| \[(\w+)\]\(\.\./rules/\1\.md\) \|", text, re.MULTILINE)
    assert "## On the page\n\n```sh\nwirelake" in text
    assert re.search(r"^## In SQL\n\n```sh\nwirelake sql ", text, re.MULTILINE)
    assert f"symptoms/{name}.md)" in (ROOT / "docs" / "symptoms.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_address_leads_to_its_text(site: Path, old: str, new: str) -> None:
    text = (site / old).read_text(encoding="utf-8")
    link = re.search(r'<a href="([^"]+)">', text)
    assert link
    target, _, anchor = link[1].partition("#")
    assert (site / old).parent.joinpath(target).resolve() == (site / new.partition("#")[0]).resolve()
    assert not anchor or f'id="{anchor}"' in (site / new.partition("#")[0]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[x](incidents.md#nowhere)", "nowhere"),
        ("[x](nowhere.md)", "nowhere.md"),
        ("[x](../nowhere.py)", "nowhere.py"),
    ],
)
def test_a_dead_link_or_anchor_stops_it(text: str, complaint: str, tmp_path: Path) -> None:
    for name in (
        "docs",
        "website",
        "notebooks",
        "mkdocs.yml",
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "RELEASING.md",
    ):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    for name in (".github", "tests", "pipeline", "conf", "decoder", "airflow_dags"):
        (tmp_path / name).symlink_to(ROOT / name)
    glossary = tmp_path / "docs" / "glossary.md"
    glossary.write_text(f"{glossary.read_text(encoding='utf-8')}\n{text}\n", encoding="utf-8")
    with pytest.raises(SiteError, match=re.escape(complaint)):
        build(tmp_path / "site", tmp_path)
