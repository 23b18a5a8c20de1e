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

pytestmark = pytest.mark.slow
_LOADED = re.compile(r"<(?:script|img|source|iframe|link)\b[^>]*?\b(?:src|srcset|href)=\"([^\"]+)\"")
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
        assert loaded
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


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("lag does not shrink", "symptoms.html#lag-does-not-shrink"),
        ("commits do not move", "symptoms.html#commits-do-not-move"),
        ("records read again", "symptoms.html#records-are-read-again-or-skipped"),
        ("fetches are empty", "symptoms.html#fetches-are-empty"),
        ("group rebalances", "symptoms.html#the-group-rebalances-again-and-again"),
        ("latency rises", "symptoms.html#latency-rises"),
        ("client does not connect", "symptoms.html#a-client-does-not-connect"),
        ("login fails", "symptoms.html#login-or-permission-fails"),
        ("producer cannot write", "symptoms.html#a-producer-cannot-write"),
        ("same error repeats", "symptoms.html#the-same-error-repeats"),
        ("who breaks on Kafka 4", "symptoms.html#which-clients-break-on-kafka-4"),
        ("mongodb cursors", "symptoms.html#mongodb-cursors-retries-and-errors"),
        ("nothing found", "symptoms.html#nothing-was-found"),
    ],
)
def test_a_symptom_is_the_first_hit(search: Callable[[str], str], asked: str, found: str) -> None:
    assert search(asked) == found


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
