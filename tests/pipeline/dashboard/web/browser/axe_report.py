"""What axe finds on each page, light and dark, kept as docs/accessibility.md.

`python -m tests.pipeline.dashboard.web.browser.axe_report` (or `make screens`) makes a lake of the sample captures,
starts the dashboard, examines each page in a real browser and writes the document.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.paths import ROOT
from tests.pipeline.dashboard.web.addresses import ADDRESSES, names_in, sample_lake
from tests.pipeline.dashboard.web.browser.axe import GRAVE, Fault, examine
from tests.pipeline.dashboard.web.browser.browsing import open_browser, wait_until_drawn
from tests.pipeline.dashboard.web.browser.screens import LOOKS, look_as
from tests.pipeline.dashboard.web.browser.served import serve

PAGE = ROOT / "docs" / "accessibility.md"
SCHEMES = LOOKS[:2]
KNOWN = {
    "svg-img-alt": (
        r'^<g class="mark-rect role-mark \w+_brush(?:_bg)?"',
        "what is dragged over a picture: Vega-Lite has no way to name these marks; the picture itself has a name",
    ),
}
"""Faults of libraries that we cannot mend: rule, the elements that may break it, and why."""
_HEAD = """<!-- Made by `make screens`. -->

# What axe finds

Each page of a lake of the sample captures, examined in Chromium by axe-core {version}: WCAG 2.0, 2.1 and 2.2, A and
AA, and best practices. A number is of elements that break a rule; serious and critical ones are none but those that are
known below.

| page | {looks} |
|---|{dashes}
"""


def is_known(fault: Fault) -> bool:
    """Whether it is a library's, and stays."""
    known = KNOWN.get(fault.rule)
    return bool(known and re.match(known[0], fault.html))


def is_ours(fault: Fault) -> bool:
    """Whether it is grave, and ours to mend."""
    return fault.impact in GRAVE and not is_known(fault)


def document(found: Mapping[str, Sequence[Sequence[Fault]]], version: str) -> str:
    """The document.

    Args:
        found: by page the faults of each of ``SCHEMES``.
        version: of axe-core.
    """
    looks, dashes = " | ".join(look.name for look in SCHEMES), "---|" * len(SCHEMES)
    rows = [f"| {page} | {' | '.join(map(_cell, by_look))} |" for page, by_look in found.items()]
    known = [f"- `{rule}`: {why}." for rule, (_, why) in KNOWN.items()]
    return (
        _HEAD.format(version=version, looks=looks, dashes=dashes)
        + "\n".join(rows)
        + "\n\nKnown, and not ours to mend:\n\n"
        + "\n".join(known)
        + "\n"
    )


def _cell(faults: Sequence[Fault]) -> str:
    counts = Counter((fault.impact, fault.rule, is_known(fault)) for fault in faults)
    return (
        ", ".join(
            f"{number} {impact} (`{rule}`{', known' if known else ''})"
            for (impact, rule, known), number in sorted(counts.items())
        )
        or "nothing"
    )


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
