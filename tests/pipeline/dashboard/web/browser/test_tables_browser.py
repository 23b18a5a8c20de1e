"""Tables in a real browser: rows are links, text is found and narrows, a heading sorts, all in the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dashboard.web.browser.browsing import wait_for_address, wait_until_drawn

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

    from tests.pipeline.dashboard.web.browser.served import Served

pytestmark = pytest.mark.slow

_STANDING = "document.querySelector('[data-rows=\"\"] table.rows')"
_SHOWN = f"return [...{_STANDING}.tBodies[0].rows].filter(row => !row.hidden).map(row => row.children[0].dataset.t)"
_FIRST = "document.querySelector('[data-rows=\"\"]')"
_CELLS = "[...row.children].filter(cell => !cell.hidden).map(cell => cell.dataset.t)"
_ALL_GROUPS = f"return [...{_FIRST}.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => {_CELLS})"
_TITLES = f"return [...{_FIRST}.querySelectorAll('th')].filter(th => !th.hidden).map(th => th.dataset.title)"
_CLIENTS = f"return [...{_FIRST}.querySelectorAll('tbody td:nth-child(4)')].map(cell => cell.dataset.t)"
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
    browser.execute_script("document.querySelector('[data-chips] button').click()")
    assert sorted(browser.execute_script(_SHOWN)) == sorted(all_of)
    browser.execute_script(press.format("not"))
    assert sorted(browser.execute_script(_SHOWN)) == sorted(name for name in all_of if name != "billing")


def test_what_was_chosen_is_in_the_address_and_comes_back(browser: WebDriver, samples_served: Served) -> None:
    browser.get(f"{samples_served.url}/groups?range=all&sort=-lag&where=state!%3Dcaught+up&columns=lag,trend")
    wait_until_drawn(browser)
    shown = browser.execute_script(_ALL_GROUPS)
    assert len(shown) > 1
    assert [row[:2] for row in shown[:1]] == [["reports", "134"]]
    assert browser.execute_script(_TITLES) == ["group", "lag", "trend"]
    lags = [int(row[1].replace(",", "")) for row in shown if row[1] not in ("", "-")]
    assert lags == sorted(lags, reverse=True)
    browser.execute_script(f"{_FIRST}.querySelector('[data-column=members]').click()")
    assert "columns=members%2Clag%2Ctrend" in browser.current_url
    assert browser.execute_script(_TITLES) == ["group", "members", "lag", "trend"]
    browser.execute_script(f"{_FIRST}.querySelector('[data-chips] button').click()")
    assert "where=" not in browser.current_url
    assert len(browser.execute_script(_ALL_GROUPS)) > len(shown)
    browser.back()
    wait_until_drawn(browser)
    assert len(browser.execute_script(_ALL_GROUPS)) == len(shown)


def test_filters_that_leave_nothing_say_which_to_drop(browser: WebDriver, samples_served: Served) -> None:
    browser.get(f"{samples_served.url}/groups?range=all&where=group_id%3Dbilling;state%3Dsteady")
    wait_until_drawn(browser)
    said = browser.execute_script(f"return {_FIRST}.querySelector('[data-count]').innerText")
    assert said.startswith("No row is left.")
    assert "Without state = steady: 1 row" in said
    browser.execute_script(
        f"[...{_FIRST}.querySelectorAll('[data-count] button')].find(one => one.innerText.includes('state')).click()"
    )
    assert [row[0] for row in browser.execute_script(_ALL_GROUPS)] == ["billing"]


def test_exchanges_are_searched_by_a_value_beyond_those_that_are_shown(
    browser: WebDriver, samples_served: Served
) -> None:
    browser.get(f"{samples_served.url}/exchanges?range=all&api=OffsetCommit")
    wait_until_drawn(browser)
    client = browser.execute_script(f"return {_FIRST}.querySelector('tbody td:nth-child(4)').dataset.t")
    browser.execute_script(f"{_FIRST}.querySelector('tbody td:nth-child(4) [data-narrow=not]').click()")
    wait_for_address(browser, "where=client_id")
    wait_until_drawn(browser)
    clients = set(browser.execute_script(_CLIENTS))
    assert clients
    assert client not in clients
    browser.execute_script(f"{_FIRST}.querySelector('tbody td:nth-child(4) [data-narrow=only]').click()")
    wait_for_address(browser, "%3B")
    wait_until_drawn(browser)
    assert len(set(browser.execute_script(_CLIENTS))) == 1
    assert "api=OffsetCommit" in browser.current_url, "what else was searched by stays"
    chips = browser.execute_script(f"return [...{_FIRST}.querySelectorAll('[data-chips] button')].length")
    assert chips == 2
