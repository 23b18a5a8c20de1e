"""Photographs of each page in a real browser: light, dark, and as on a phone.

`python -m tests.pipeline.dashboard.web.browser.screens [NAME…]` (or `make screens`) makes a lake of the sample
captures, starts the dashboard and writes `docs/screens/NAME.light.png`, `.dark.png` and `.phone.png`, of so few colours
that each is small; and docs/screens.md, which shows them. `--lake DIR` looks at another lake that holds the stuck
commit.
"""

from __future__ import annotations

import argparse
import base64
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tests.paths import ROOT
from tests.pipeline.dashboard.web.addresses import PICTURED, names_in, sample_lake
from tests.pipeline.dashboard.web.browser.browsing import click, open_browser, wait_until_drawn
from tests.pipeline.dashboard.web.browser.served import serve

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

FOLDER = ROOT / "docs" / "screens"
PAGE = ROOT / "docs" / "screens.md"
MOST_BYTES = 150_000
_COLOURS = (128, 64, 32, 16)
_WIDTHS = """
const main = document.querySelector('[data-testid=stMain]');
return [document.scrollingElement.scrollWidth, main.scrollWidth];
"""


@dataclass(frozen=True, slots=True)
class Look:
    """How somebody looks at a page. Sizes are CSS pixels."""

    name: str
    scheme: str
    width: int
    height: int
    is_phone: bool = False


LOOKS = (
    Look("light", "light", 1280, 1080),
    Look("dark", "dark", 1280, 1080),
    Look("phone", "light", 390, 844, is_phone=True),
)


def look_as(browser: WebDriver, look: Look) -> None:
    """Have the browser prefer a colour scheme, on a screen of this size."""
    features = [
        {"name": "prefers-color-scheme", "value": look.scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.is_phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def widths(browser: WebDriver) -> tuple[int, int]:
    """How wide the whole page is and how wide its main part, each as far as it can be scrolled."""
    whole, main = browser.execute_script(_WIDTHS)
    return whole, main


def picture(browser: WebDriver) -> bytes:
    """What is seen now, as a PNG of at most ``MOST_BYTES``."""
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    return small_png(base64.b64decode(taken), _COLOURS)


def small_png(taken: bytes, numbers: Sequence[int]) -> bytes:
    """A picture as a PNG of this many colours: the first number that leaves it at ``MOST_BYTES``, else the last.

    Its most frequent colours stay as they are, since some tell members apart; any other becomes the nearest of them.
    """
    with Image.open(io.BytesIO(taken)) as image:
        whole = np.asarray(image.convert("RGB"))
    colours, which, counts = np.unique(whole.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    by_count = colours[np.argsort(-counts, kind="stable")].astype(np.int32)
    for number in numbers:
        kept = by_count[:number]
        nearest = np.array([((kept - colour) ** 2).sum(axis=1).argmin() for colour in colours.astype(np.int32)])
        drawn = Image.fromarray(nearest[which].reshape(whole.shape[:2]).astype(np.uint8), "P")
        drawn.putpalette(kept.astype(np.uint8).tobytes())
        out = io.BytesIO()
        drawn.save(out, "PNG", optimize=True)
        if out.tell() <= MOST_BYTES:
            break
    return out.getvalue()


def page() -> str:
    """The document that shows all pictures."""
    parts = [
        "<!-- Made by `make screens`. -->",
        "# What the pages look like",
        "Of a lake of the sample captures, recorded in Chromium. The pictures follow your system's light or dark.",
    ]
    for address in PICTURED:
        name = f"screens/{address.name}"
        parts.append(
            f"## {address.name.capitalize()}\n\n<picture>\n"
            f'  <source media="(prefers-color-scheme: dark)" srcset="{name}.dark.png">\n'
            f'  <img src="{name}.light.png" alt="The page {address.name}" width="640">\n</picture>\n'
            f'<img src="{name}.phone.png" alt="The same on a phone" width="200">'
        )
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Photograph the pages into docs/screens.")
    parser.add_argument("names", nargs="*", choices=[[], *(address.name for address in PICTURED)], metavar="NAME")
    parser.add_argument("--lake", type=Path)
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="wirelake-screens-") as folder:
        lake = arguments.lake or sample_lake(Path(folder))
        named = names_in(lake)
        with serve(lake) as served, open_browser(Path(folder) / "profile") as browser:
            for address in PICTURED:
                if arguments.names and address.name not in arguments.names:
                    continue
                for look in LOOKS:
                    look_as(browser, look)
                    browser.get(address.of(served.url, named))
                    wait_until_drawn(browser)
                    if address.press:
                        click(browser, "button", address.press)
                        wait_until_drawn(browser)
                    file = FOLDER / f"{address.name}.{look.name}.png"
                    file.write_bytes(picture(browser))
                    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
