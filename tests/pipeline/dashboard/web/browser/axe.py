"""axe-core in a browser: what of a page keeps out people who do not see, or do not use a mouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

GRAVE = ("serious", "critical")
_RUN = """
const done = arguments[arguments.length - 1];
const standards = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
axe.run(document, {runOnly: standards, resultTypes: ['violations']}).then(done, error => done({error: String(error)}));
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One element that breaks a rule.

    Attributes:
        rule: axe's name of it, see https://dequeuniversity.com/rules/axe.
        impact: minor, moderate, serious or critical.
        element: its selector.
        html: the element itself.
        why: what axe says.
    """

    rule: str
    impact: str
    element: str
    html: str
    why: str


def examine(browser: WebDriver) -> list[Fault]:
    """All faults of the page that the browser shows."""
    browser.execute_script(_source())
    browser.set_script_timeout(120)
    found: Mapping[str, Any] = browser.execute_async_script(_RUN)
    if "error" in found:
        raise RuntimeError(found["error"])
    return [
        Fault(one["id"], one["impact"], " ".join(map(str, node["target"])), node["html"], node["failureSummary"])
        for one in found["violations"]
        for node in one["nodes"]
    ]


def _source() -> str:
    """axe-core, as a package brings it whose own code is not used."""
    package = find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        raise RuntimeError("axe-core is missing: make setup")
    return Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")
