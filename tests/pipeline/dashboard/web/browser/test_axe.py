"""axe finds nothing serious on any page, light or dark, nor is one wider than a phone; keys lead to what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dashboard.web.addresses import ADDRESSES, Address, names_in
from tests.pipeline.dashboard.web.browser.axe import GRAVE, examine
from tests.pipeline.dashboard.web.browser.axe_report import PAGE
from tests.pipeline.dashboard.web.browser.browsing import wait_for_address, wait_until_drawn
from tests.pipeline.dashboard.web.browser.screens import LOOKS, Look, look_as, widths
from tests.pipeline.dashboard.web.browser.served import Served

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_MOST_TABS = 80
_LOOK = "const s = getComputedStyle(arguments[0]); return [s.outlineStyle, s.boxShadow, s.backgroundColor].join()"


@pytest.fixture(scope="module")
def named(sampled: Path) -> dict[str, str]:
    return names_in(sampled)


@pytest.fixture(scope="module")
def url(samples_served: Served) -> str:
    return samples_served.url


@pytest.mark.parametrize(
    "look", [pytest.param(LOOKS[0], id="light"), pytest.param(LOOKS[1], id="dark", marks=pytest.mark.proof)]
)
@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address.name)
def test_nothing_serious(address: Address, look: Look, browser: WebDriver, url: str, named: dict[str, str]) -> None:
    look_as(browser, look)
    browser.get(address.of(url, named))
    wait_until_drawn(browser)
    assert [fault for fault in examine(browser) if fault.impact in GRAVE] == []
    phone = LOOKS[-1]
    look_as(browser, phone)
    wait_until_drawn(browser)
    assert widths(browser) == (phone.width, phone.width), "a phone need not scroll sideways"


def test_the_report_names_each_page_and_nothing_grave() -> None:
    report = PAGE.read_text(encoding="utf-8")
    rows = [line for line in report.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [address.name for address in ADDRESSES]
    assert re.findall(r"\d+ (?:serious|critical) \(.*?\)", report) == []


def test_a_fault_is_found(browser: WebDriver, url: str) -> None:
    look_as(browser, LOOKS[0])
    browser.get(url)
    wait_until_drawn(browser)
    browser.execute_script("for (const each of document.querySelectorAll('p')) each.style.color = '#ddd'")
    assert "color-contrast" in {fault.rule for fault in examine(browser) if fault.impact in GRAVE}


def test_from_the_first_page_to_an_incident_by_keyboard(browser: WebDriver, url: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    look_as(browser, LOOKS[0])
    browser.get(url)
    wait_until_drawn(browser)
    for _ in range(_MOST_TABS):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        focused = browser.switch_to.active_element
        if focused.tag_name == "summary":
            focused.send_keys(Keys.ENTER)  # opens the line of an incident, in place
        if "/incident?" in (focused.get_attribute("href") or ""):
            break
    else:
        pytest.fail(f"no incident within {_MOST_TABS} tabs")
    with_focus = browser.execute_script(_LOOK, focused)
    browser.execute_script("arguments[0].blur()", focused)
    assert browser.execute_script(_LOOK, focused) != with_focus, "where the focus is must be seen"
    focused.send_keys(Keys.ENTER)
    wait_for_address(browser, "/incident?")
