"""Tables in a real browser: rows are links, text is found and can be narrowed by, a heading sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dashboard.web.browser.browsing import wait_for_address, wait_until_drawn

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

    from tests.pipeline.dashboard.web.browser.served import Served

pytestmark = pytest.mark.slow

_STANDING = "[...document.querySelectorAll('table.rows')].at(-1)"
_SHOWN = f"return [...{_STANDING}.tBodies[0].rows].filter(row => !row.hidden).map(row => row.children[0].dataset.t)"
_LAGS = f"return [...{_STANDING}.tBodies[0].rows].map(row => row.querySelectorAll('td.right')[1].dataset.v)"


def test_a_row_is_a_link_within_the_page(browser: WebDriver, samples_served: Served) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    browser.get(f"{samples_served.url}/partitions?range=all")
    wait_until_drawn(browser)
    browser.execute_script("window.stillThere = true")
    groups = browser.execute_script(_SHOWN)
    assert "reports" in groups
    assert browser.execute_script("return window.find('reports')"), "the browser's own search finds it"
    link = browser.execute_script(f"return {_STANDING}.tBodies[0].rows[{groups.index('reports')}].querySelector('a')")
    assert "/partitions?range=all&group=reports&topic=orders&partition=0" in link.get_attribute("href")
    link.send_keys(Keys.ENTER)
    wait_for_address(browser, "group=reports")
    wait_until_drawn(browser)
    assert browser.execute_script("return window.stillThere"), "the page was not loaded anew"
    assert "134 records behind" in browser.find_element("tag name", "body").text
    browser.back()
    wait_until_drawn(browser)
    assert "group=" not in browser.current_url


def test_rows_are_sorted_and_narrowed_by_what_stands_in_them(browser: WebDriver, samples_served: Served) -> None:
    browser.get(f"{samples_served.url}/partitions?range=all")
    wait_until_drawn(browser)
    all_of = browser.execute_script(_SHOWN)
    browser.execute_script(
        f"[...{_STANDING}.tHead.querySelectorAll('th')].find(th => th.dataset.title === 'lag').firstChild.click()"
    )
    lags = browser.execute_script(_LAGS)
    assert lags == sorted(lags, key=lambda lag: float(lag or "inf")), "what is not known comes last"
    press = f"{_STANDING}.querySelector('td[data-t=billing] [data-narrow={{}}]').click()"
    browser.execute_script(press.format("only"))
    assert set(browser.execute_script(_SHOWN)) == {"billing"}
    browser.execute_script("document.querySelector('[data-rule]').click()")
    assert sorted(browser.execute_script(_SHOWN)) == sorted(all_of)
    browser.execute_script(press.format("not"))
    assert sorted(browser.execute_script(_SHOWN)) == sorted(name for name in all_of if name != "billing")
