"""The pictures of the page are there, small, and shown."""

from __future__ import annotations

import pytest
from PIL import Image

from tests.paths import ROOT
from tests.pipeline.dashboard.web.addresses import ADDRESSES, PICTURED
from tests.pipeline.dashboard.web.browser.screens import FOLDER, LOOKS, MOST_BYTES, PAGE, Look, page


def test_each_page_has_an_address() -> None:
    pages = {page.stem for page in (ROOT / "pipeline" / "dashboard" / "web" / "page").rglob("[a-z]*.py")}
    assert pages - {address.path for address in ADDRESSES} <= {"home"}


def test_the_document_shows_each_page() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make screens writes it again"
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == {
        f"{a.name}.{look.name}.png" for a in PICTURED for look in LOOKS
    }


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_each_picture_is_small_and_of_its_look(look: Look) -> None:
    for address in PICTURED:
        file = FOLDER / f"{address.name}.{look.name}.png"
        assert file.stat().st_size <= MOST_BYTES
        with Image.open(file) as image:
            assert image.size == (look.width, look.height)
            corner = image.convert("RGB").getpixel((5, look.height - 5))  # no scrollbar there
        assert isinstance(corner, tuple)
        assert (sum(corner) < 200) == (look.scheme == "dark"), file
