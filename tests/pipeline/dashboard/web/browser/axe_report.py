"""What axe finds on each page, light and dark, kept as docs/accessibility.md.

`python -m tests.pipeline.dashboard.web.browser.axe_report` (or `make screens`) makes a lake of the sample captures,
starts the dashboard, examines each page in a real browser and writes the document.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.paths import ROOT
from tests.pipeline.dashboard.web.addresses import ADDRESSES, names_in, sample_lake
from tests.pipeline.dashboard.web.browser.axe import Fault, examine
from tests.pipeline.dashboard.web.browser.browsing import open_browser, wait_until_drawn
from tests.pipeline.dashboard.web.browser.screens import LOOKS, look_as
from tests.pipeline.dashboard.web.browser.served import serve

PAGE = ROOT / "docs" / "accessibility.md"
SCHEMES = LOOKS[:2]
_HEAD = """<!-- Made by `make screens`. -->

# What axe finds

Each page of a lake of the sample captures, examined in Chromium by axe-core {version}: WCAG 2.0, 2.1 and 2.2, A and
AA, and best practices. A number is of elements that break a rule; none of them is serious or critical.

| page | {looks} |
|---|{dashes}
"""


def document(found: Mapping[str, Sequence[Sequence[Fault]]], version: str) -> str:
    """The document.

    Args:
        found: by page the faults of each of ``SCHEMES``.
        version: of axe-core.
    """
    looks, dashes = " | ".join(look.name for look in SCHEMES), "---|" * len(SCHEMES)
    rows = [f"| {page} | {' | '.join(map(_cell, by_look))} |" for page, by_look in found.items()]
    return _HEAD.format(version=version, looks=looks, dashes=dashes) + "\n".join(rows) + "\n"


def _cell(faults: Sequence[Fault]) -> str:
    counts = Counter((fault.impact, fault.rule) for fault in faults)
    return ", ".join(f"{number} {impact} (`{rule}`)" for (impact, rule), number in sorted(counts.items())) or "nothing"


def main() -> None:
    """Examine all pages and write the document."""
    found: dict[str, list[list[Fault]]] = {}
    version = ""
    with tempfile.TemporaryDirectory(prefix="wirelake-axe-") as folder:
        lake = sample_lake(Path(folder))
        named = names_in(lake)
        with serve(lake) as served, open_browser(Path(folder) / "profile") as browser:
            for address in ADDRESSES:
                for look in SCHEMES:
                    look_as(browser, look)
                    browser.get(address.of(served.url, named))
                    wait_until_drawn(browser)
                    faults = examine(browser)
                    found.setdefault(address.name, []).append(faults)
                    print(f"{address.name} {look.name}: {_cell(faults)}", flush=True)
            version = browser.execute_script("return axe.version")
    PAGE.write_text(document(found, version), encoding="utf-8")


if __name__ == "__main__":
    main()
