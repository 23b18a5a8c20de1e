"""The page in a real browser, on the lake of real captures: what an engineer sees who opens it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.pipeline.dashboard.web.browser.browsing import DONE, click, wait_for
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [pytest.mark.spark, pytest.mark.proof]  # its lake is made by the job; others are by a diagnosis


@pytest.fixture(scope="module")
def served(whole: Path) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    with serve(whole) as running:
        yield running


def test_each_finding_is_read(browser: WebDriver, served: Served) -> None:
    browser.get(f"{served.url}/findings")
    wait_for(browser, "h1", "Findings")
    assert "orders-tx-1" in wait_for(browser, "[data-testid=stText]", "The last stable offset of orders-0 was at")
    wait_for(browser, "[data-testid=stExpander]", "billing/payments-2")
    assert "All times are UTC" in wait_for(browser, "[data-testid=stSidebar]", "Lake as of")


def test_a_finding_leads_to_the_picture_of_its_partition(browser: WebDriver, served: Served) -> None:
    browser.get(f"{served.url}/findings")
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
        "": "Incidents", "findings": "Findings", "search": "Search", "partitions": "Groups & partitions",
        "transactions": "Transactions", "clients": "Clients", "connections": "Connections", "group": "Group",
        "mongodb": "MongoDB",
        "quality": "Quality", "latency": "Latency & errors", "exchanges": "Exchanges", "query": "SQL",
    }  # fmt: skip
    for page, title in titles.items():
        browser.get(f"{served.url}/{page}")
        wait_for(browser, "h1", title)
        wait_for(browser, DONE)
        assert browser.find_elements(By.CSS_SELECTOR, "[data-testid=stException]") == [], page
