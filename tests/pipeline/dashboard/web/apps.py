"""Pages as Streamlit runs them, without a browser: which there are, and what is on one."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pipeline

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

SCRIPT = Path(pipeline.__file__).parent / "dashboard" / "web" / "app.py"
"""Of the package that is imported: an installed one is not beside the tests."""
_SCRIPTS = {file.stem: file.relative_to(SCRIPT.parent) for file in (SCRIPT.parent / "page").rglob("[a-z]*.py")}
PAGES = tuple(sorted(_SCRIPTS))


def _look_for_components_once() -> None:
    """Streamlit reads what every installed package says of itself, for each page again: half a second."""
    from streamlit.components.v2 import manifest_scanner  # noqa: PLC0415 - slow import

    look = manifest_scanner.scan_component_manifests
    if not hasattr(look, "cache_info"):
        manifest_scanner.scan_component_manifests = cache(look)  # type: ignore[assignment]


def open_page(page: str, *, may_fail: bool = False, **parameters: str) -> AppTest:
    """Open a page of the lake that the environment names; whatever it raises fails the test.

    With ``may_fail`` a part of it may: that is a sentence on the page.
    """
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415 - slow import

    _look_for_components_once()
    app = AppTest.from_file(str(SCRIPT), default_timeout=60)
    app.query_params.update({name: [value] for name, value in parameters.items()})
    if page != "home":
        app.switch_page(str(_SCRIPTS[page]))
    app.run()
    assert [error.message for error in app.exception] == []
    assert may_fail or [error.value for error in app.error if "internal error" in error.value] == []
    return app


def frames(app: AppTest) -> list[list[dict[str, Any]]]:
    """The rows of each table of the page, those of HTML first."""
    read = _Tables()
    for element in app.get("html"):
        read.feed(element.proto.body)
    return read.tables + [table.value.to_dict("records") for table in app.dataframe]


def row_links(app: AppTest) -> list[str]:
    """Where the rows of its tables lead."""
    read = _Tables()
    for element in app.get("html"):
        read.feed(element.proto.body)
    return read.links


class _Tables(HTMLParser):
    """Reads tables of HTML as their rows: numbers and times by their value, all else by its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[dict[str, Any]]] = []
        self.links: list[str] = []
        self._columns: list[tuple[str, str]] = []
        self._at = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        match tag:
            case "table":
                self.tables.append([])
                self._columns = []
            case "th" if "data-title" in given:
                self._columns.append((given["data-title"] or "", given["data-kind"] or ""))
            case "tr" if self._columns:
                self.tables[-1].append({})
                self._at = 0
            case "td" if self._columns:
                title, kind = self._columns[self._at]
                self.tables[-1][-1][title] = _value(kind, given["data-v"] or "", given["data-t"] or "")
                self._at += 1
            case "a" if self._columns:
                self.links.append(given["href"] or "")


def _value(kind: str, key: str, text: str) -> Any:
    match kind:
        case "number" | "ms" if key == "":
            return None
        case "number":
            return int(key)
        case "ms":
            return float(key) / 1000
        case "time" if key:
            return datetime.fromtimestamp(int(key) / 1e6, timezone.utc)
        case _:
            return text


def text_of(app: AppTest) -> str:
    """All texts of the page, a line each."""
    kinds = ("title", "header", "markdown", "caption", "text", "info", "success", "warning", "error", "code")
    lines = [element.value for kind in kinds for element in app.get(kind)]
    lines += [element.label for kind in ("expander", "metric") for element in app.get(kind)]
    return "\n".join(map(str, lines))
