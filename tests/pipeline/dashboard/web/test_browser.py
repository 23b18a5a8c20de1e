"""The page in a real browser, on the lake of real captures: what an engineer sees who opens it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.pipeline.dashboard.web.served import Served, serve
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # its lake is made by the job

_PATIENCE_SECONDS = 60
_ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
    "--window-size=1500,1400",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(whole: Path) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    with serve(whole) as running:
        yield running


@pytest.fixture(scope="module")
def browser(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    from selenium import webdriver  # noqa: PLC0415 - not without a browser

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for option in (*_ALONE, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


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


def click(browser: WebDriver, selector: str, text: str) -> None:
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    wait_for(browser, selector, text)
    next(e for e in browser.find_elements(By.CSS_SELECTOR, selector) if text in e.text).click()


def test_the_findings_are_read_first(browser: WebDriver, served: Served) -> None:
    browser.get(served.url)
    wait_for(browser, "h1", "Findings")
    assert "orders-tx-1" in wait_for(browser, "[data-testid=stText]", "The last stable offset of orders-0 stood at")
    wait_for(browser, "[data-testid=stExpander]", "billing/payments-2")
    assert "All times are UTC" in wait_for(browser, "[data-testid=stSidebar]", "Lake as of")


def test_a_finding_leads_to_the_picture_of_its_partition(browser: WebDriver, served: Served) -> None:
    browser.get(served.url)
    click(browser, "[data-testid=stExpander] a", "Offsets over time")
    wait_for(browser, "h1", "Groups & partitions")
    wait_for(browser, "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg")
    assert "topic=orders" in browser.current_url
    assert "partition=0" in browser.current_url


def test_the_picture_of_a_stuck_commit_has_both_committers(browser: WebDriver, served: Served) -> None:
    browser.get(f"{served.url}/partitions?{urlencode({'group': 'billing', 'topic': 'payments', 'partition': 2})}")
    wait_for(browser, "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg")
    assert "by 2 members" in wait_for(browser, "[data-testid=stCaptionContainer]", "72 commits accepted")


def test_nothing_is_asked_of_another_server(browser: WebDriver, served: Served) -> None:
    browser.get(f"{served.url}/latency")
    wait_for(browser, "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg")
    asked: list[str] = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert asked
    assert [url for url in asked if not url.startswith((served.url, "data:", "blob:"))] == []


def test_no_page_shows_an_exception(browser: WebDriver, served: Served) -> None:
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    titles = {
        "": "Findings", "partitions": "Groups & partitions", "transactions": "Transactions",
        "clients": "Clients", "latency": "Latency & errors", "exchanges": "Exchanges", "query": "SQL",
    }  # fmt: skip
    for page, title in titles.items():
        browser.get(f"{served.url}/{page}")
        wait_for(browser, "h1", title)
        wait_for(browser, "[data-testid=stApp][data-test-script-state=notRunning]")
        assert browser.find_elements(By.CSS_SELECTOR, "[data-testid=stException]") == [], page
