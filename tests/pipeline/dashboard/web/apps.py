"""Pages as Streamlit runs them, without a browser: which there are, and what stands on one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pipeline

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

SCRIPT = Path(pipeline.__file__).parent / "dashboard" / "web" / "app.py"
"""Of the package that is imported: an installed one does not lie beside the tests."""
_SCRIPTS = {file.stem: file.relative_to(SCRIPT.parent) for file in (SCRIPT.parent / "page").rglob("[a-z]*.py")}
PAGES = tuple(sorted(_SCRIPTS))


def _look_for_components_once() -> None:
    """Streamlit reads what every installed package says of itself, for each page anew: half a second."""
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
    """The rows of each table of the page."""
    return [table.value.to_dict("records") for table in app.dataframe]


def text_of(app: AppTest) -> str:
    """All texts of the page, a line each."""
    kinds = ("title", "header", "markdown", "caption", "text", "info", "success", "warning", "error", "code")
    lines = [element.value for kind in kinds for element in app.get(kind)]
    lines += [element.label for kind in ("expander", "metric") for element in app.get(kind)]
    return "\n".join(map(str, lines))
