"""Names are completed while somebody types a query, in a real browser under the page's own policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.dashboard.web.browser.axe import GRAVE, examine
from tests.pipeline.dashboard.web.browser.browsing import as_at_first, wait_for, wait_until_drawn
from tests.pipeline.dashboard.web.browser.served import serve

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(hand_made_lake: Path, started: WebDriver) -> Iterator[WebDriver]:
    as_at_first(started)
    with serve(hand_made_lake) as served:
        started.get(f"{served.url}/query")
        wait_until_drawn(started)
        yield started


@pytest.fixture
def box(browser: WebDriver) -> Any:
    """The box of the query, empty."""
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    found = browser.find_element("css selector", 'textarea[aria-label="Query"]')
    found.send_keys(Keys.ESCAPE, Keys.CONTROL, "a")
    found.send_keys(Keys.DELETE)
    return found


def offered(browser: WebDriver) -> list[str]:
    items = browser.find_elements("css selector", "#completions li")
    return [item.text.split()[0] for item in items if item.is_displayed()]


def test_a_table_is_taken_by_tab_and_a_column_of_it_by_arrows(browser: WebDriver, box: Any) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    box.send_keys("SELECT * FROM exch")
    assert "silver.exchanges" in offered(browser)
    assert examine_gravely(browser) == []
    box.send_keys(Keys.ESCAPE, Keys.BACKSPACE)
    box.send_keys(Keys.BACKSPACE * 3, "silver.ex")
    assert offered(browser)[0] == "silver.exchanges"
    box.send_keys(Keys.TAB)
    assert offered(browser) == []
    box.send_keys(" WHERE laten")
    assert offered(browser)[0] == "latency_us"
    box.send_keys(Keys.ARROW_DOWN)
    assert box.get_attribute("aria-activedescendant") == "completion-0"
    box.send_keys(Keys.ENTER, " = 700 LIMIT 2")
    assert box.get_attribute("value") == "SELECT * FROM silver.exchanges WHERE latency_us = 700 LIMIT 2"
    box.send_keys(Keys.CONTROL, Keys.ENTER)
    assert "2 rows" in wait_for(browser, "[data-testid=stCaptionContainer]", "2 rows")


def examine_gravely(browser: WebDriver) -> list[Any]:
    return [fault for fault in examine(browser) if fault.impact in GRAVE]


def test_it_is_in_nobodys_way(browser: WebDriver, box: Any) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    box.send_keys("SELECT 1", Keys.ENTER, "AS gold")
    assert offered(browser)
    box.send_keys(Keys.ENTER, "-- x")  # nothing was chosen: a new line
    assert box.get_attribute("value") == "SELECT 1\nAS gold\n-- x"
    box.send_keys(Keys.ESCAPE)
    assert offered(browser) == []
    box.send_keys(Keys.TAB)  # leaves the box, as everywhere
    assert browser.switch_to.active_element != box
    box.send_keys(Keys.CONTROL, " ")
    assert "silver.exchanges" in offered(browser)  # what has an x
    box.send_keys(Keys.ESCAPE)
