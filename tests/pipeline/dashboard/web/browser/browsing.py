"""A real browser that talks to nobody but the page, and how tests wait for what it shows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

Found = TypeVar("Found")

_PATIENCE_SECONDS = 60
_LOOK_SECONDS = 0.1
DONE = "[data-testid=stApp][data-test-script-state=notRunning]"
"""Selects something once the page's script has ended."""
TO_COME = "[data-testid=stSkeleton], [data-testid=stSpinner], [data-stale=true]"
"""Selects what is promised and not there yet."""
_DRAWN = f"""
const app = document.querySelector('[data-testid=stApp]');
const waits = document.querySelectorAll('{TO_COME}').length;
const charts = [...document.querySelectorAll('[data-testid=stVegaLiteChart]')];
const drawn = charts.every(chart => chart.querySelector('svg, canvas'));
return waits || !drawn ? '' : [app.innerText.length, app.querySelectorAll('*').length, app.scrollHeight].join();
"""
"""What there is to see, or nothing while some of it is still to come."""
ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
    "--window-size=1500,1400",
)  # fmt: skip
"""Options of Chromium."""


@contextmanager
def open_browser(profile: Path) -> Iterator[WebDriver]:
    """Start Chromium with an empty profile, and end it."""
    from selenium import webdriver  # noqa: PLC0415 - not without a browser

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for option in (*ALONE, f"--user-data-dir={profile}"):
        options.add_argument(option)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def as_at_first(browser: WebDriver) -> None:
    """An empty page, nothing kept of others, and nothing of what was made believe about the screen and its user."""
    browser.get("about:blank")
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def wait_for(browser: WebDriver, selector: str, text: str = "") -> str:
    """The text of the first element that the selector finds and that has ``text`` in it, once it is there."""
    from selenium.common.exceptions import StaleElementReferenceException  # noqa: PLC0415
    from selenium.webdriver.common.by import By  # noqa: PLC0415
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    def found(driver: WebDriver) -> list[str]:
        texts = [element.text for element in driver.find_elements(By.CSS_SELECTOR, selector)]
        return [one for one in texts if text in one]

    wait = WebDriverWait(browser, _PATIENCE_SECONDS, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(found, f"{selector} with {text!r}")[0]


def wait_until_drawn(browser: WebDriver) -> None:
    """Until the page's script has ended, nothing is promised any more, and two looks in a row see the same."""
    wait_for(browser, "h1")
    wait_for(browser, DONE)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    seen: list[str] = []
    while time.monotonic() < deadline:
        seen = [*seen[-2:], browser.execute_script(_DRAWN)]
        if len(seen) == 3 and seen[0] != "" and len(set(seen)) == 1:
            return
        time.sleep(_LOOK_SECONDS)
    raise AssertionError("the page did not come to rest")


def click(browser: WebDriver, selector: str, text: str) -> None:
    """Click the first such element, once it is there; one that is replaced meanwhile is looked for again."""
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    def clicked() -> None:
        next(e for e in browser.find_elements(By.CSS_SELECTOR, selector) if text in e.text).click()

    wait_for(browser, selector, text)
    again_when_replaced(clicked)


def again_when_replaced(act: Callable[[], Found]) -> Found:
    """Look for an element and act on it, once more where the page has drawn it again in between."""
    from selenium.common.exceptions import StaleElementReferenceException  # noqa: PLC0415

    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return act()
        except StaleElementReferenceException:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_SECONDS)


def wait_for_address(browser: WebDriver, part: str) -> str:
    """The browser's address, once ``part`` is in it."""
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    WebDriverWait(browser, _PATIENCE_SECONDS).until(lambda driver: part in driver.current_url, f"{part} in the address")
    return browser.current_url


def wait_for_change(browser: WebDriver, address: str) -> str:
    """The browser's address, once it is another one."""
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    WebDriverWait(browser, _PATIENCE_SECONDS).until(lambda driver: driver.current_url != address, "another address")
    return browser.current_url
