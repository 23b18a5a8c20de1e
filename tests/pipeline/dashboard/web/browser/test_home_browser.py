"""The page as somebody meets it who has no mouse, a phone, another zone, or a name to look for; in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pipeline.dashboard.web.apps import PAGES
from tests.pipeline.dashboard.web.browser.browsing import (
    DONE,
    again_when_replaced,
    as_at_first,
    wait_for,
    wait_for_address,
    wait_until_drawn,
)
from tests.pipeline.dashboard.web.browser.screens import LOOKS, Look, look_as, widths
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_CAPTURES = ("stuck_commit", "stalled_lso", "mongodb/troubled_mongodb")
_MOST_TABS = 60
PHONE = ("home",)
OTHERS = tuple(page for page in PAGES if page not in PHONE)
_SCROLL = """
const main = document.querySelector('[data-testid=stMain]');
const search = document.querySelector("input[aria-label='Search for a name']");
const far = main.querySelectorAll('[data-testid=stExpander]')[2];
main.scrollTop = 1500;
const scrolled = main.scrollTop;
const box = search.getBoundingClientRect();
const isOnTop = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === search;
let behind = search;
while (getComputedStyle(behind).position !== 'sticky') behind = behind.parentElement;
const bottom = behind.getBoundingClientRect().bottom;
const colour = getComputedStyle(behind).backgroundColor;
far.scrollIntoView();
return [scrolled, box.top, bottom, isOnTop, colour, far.getBoundingClientRect().top];
"""
"""Scrolls, and jumps to a finding: how far, where the search is, what is on top, and where the finding is."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    with serve(diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", *_CAPTURES)) as running:
        yield running


@pytest.fixture
def browser(started: WebDriver) -> WebDriver:
    """A browser on an empty page, of a usual size and zone, for each test."""
    as_at_first(started)
    return started


def tab_to(browser: WebDriver, text: str, tag: str = "a") -> None:
    """Press Tab until the link, or another element that takes the focus, with this text has it."""
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    met = []
    for _ in range(_MOST_TABS):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        focused = browser.switch_to.active_element
        met.append((focused.tag_name, focused.text[-60:] or focused.get_attribute("aria-label")))
        if focused.tag_name == tag and text in focused.text:
            return
    pytest.fail(f"{text!r} is not reached by {_MOST_TABS} tabs: {met}")


def press_enter(browser: WebDriver) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    ActionChains(browser).send_keys(Keys.ENTER).perform()


def test_keys_alone_lead_from_the_worst_incident_to_a_message(browser: WebDriver, served: Served) -> None:
    browser.get(served.url)
    wait_for(browser, "h1", "Incidents")
    wait_for(browser, "summary", "keeps transaction orders-tx-1 open")
    wait_for(browser, DONE)
    tab_to(browser, "keeps transaction orders-tx-1 open", "summary")
    press_enter(browser)
    wait_for(browser, "a", "What happened")
    tab_to(browser, "What happened")
    press_enter(browser)
    wait_for_address(browser, "incident=")
    wait_for(browser, "h1", "keeps transaction orders-tx-1 open")
    assert "keeps transaction orders-tx-1 open" in browser.title
    wait_for(browser, "a", "Evidence: 1 exchange")
    wait_for(browser, DONE)
    tab_to(browser, "Evidence: 1 exchange")
    press_enter(browser)
    wait_for_address(browser, "finding=")
    assert "hanging_transaction" in wait_for(browser, "p", "Evidence of")
    wait_for(browser, "h2", " v")  # the exchange itself: api and version


@pytest.mark.parametrize("page", [*PHONE, *(pytest.param(page, marks=pytest.mark.proof) for page in OTHERS)])
def test_a_phone_need_not_scroll_sideways(browser: WebDriver, served: Served, page: str) -> None:
    """Where a page is opened on a phone; test_axe.py makes each page narrow that is open."""
    phone = LOOKS[-1]
    look_as(browser, phone)
    browser.get(f"{served.url}/{'' if page == 'home' else page}?q=billing")
    wait_for(browser, "h1")
    wait_for(browser, DONE)
    assert widths(browser) == (phone.width, phone.width)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_the_search_stays_in_view_and_covers_nothing_that_is_jumped_to(
    browser: WebDriver, served: Served, look: Look
) -> None:
    look_as(browser, look)
    browser.get(f"{served.url}/findings")
    wait_until_drawn(browser)
    scrolled, top, bottom, is_on_top, behind, jumped = browser.execute_script(_SCROLL)
    assert scrolled == 1500, "the page is long enough"
    assert 0 <= top < bottom <= look.height / 6
    assert is_on_top
    assert behind == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 22, 20)"}[look.scheme], "nothing shines through"
    assert bottom <= jumped < look.height / 4


def test_local_times_are_those_of_the_browser_and_stay_in_the_address(browser: WebDriver, served: Served) -> None:
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    browser.get(served.url)
    wait_for(browser, "summary", "since 2026-11-21 04:51:18 UTC")
    browser.get(f"{served.url}/?times=local")
    wait_for(browser, "summary", "since 2026-11-21 05:51:18 CET")
    assert "All times are Europe/Berlin." in wait_for(browser, "[data-testid=stSidebar]", "Lake as of")
    first = "[data-testid=stMain] a[href*='incident=']"
    link = again_when_replaced(lambda: browser.find_element("css selector", first).get_attribute("href"))
    assert parse_qs(urlsplit(link or "").query)["times"] == ["local"]


@pytest.mark.parametrize("page", ["", "clients", "exchanges"])
def test_a_name_is_looked_for_from_any_page(browser: WebDriver, served: Served, page: str) -> None:
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    browser.get(f"{served.url}/{page}?protocol=Kafka")
    wait_until_drawn(browser)

    def searched() -> None:
        field = browser.find_element("css selector", "input[aria-label='Search for a name']")
        field.send_keys("billing-2", Keys.ENTER)

    again_when_replaced(searched)
    wait_for(browser, "h1", "Search")
    wait_for(browser, "a", "billing-2")
    query = parse_qs(urlsplit(wait_for_address(browser, "/search")).query)
    assert query == {"q": ["billing-2"], "protocol": ["Kafka"]}
