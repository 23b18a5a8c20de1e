"""One browser for all modules, and one server of the sample captures' lake: each takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dashboard.web.addresses import sample_lake
from tests.pipeline.dashboard.web.browser.browsing import as_at_first, open_browser
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """The browser, as whoever used it left it: ask for ``browser``."""
    require_browser()
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(started: WebDriver) -> WebDriver:
    """A browser on an empty page, of a usual size, zone and scheme, for a module."""
    as_at_first(started)
    return started


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the sample captures, to read from only."""
    require_streamlit()
    return sample_lake(tmp_path_factory.mktemp("sampled"))


@pytest.fixture(scope="session")
def samples_served(sampled: Path) -> Iterator[Served]:
    with serve(sampled) as running:
        yield running
