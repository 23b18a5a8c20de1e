"""A connection as a sequence in a real browser: a finding leads there, and a click on a step opens its exchange."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.dashboard.sql import query
from tests.pipeline.dashboard.web.browser.browsing import again_when_replaced, click, wait_for, wait_for_address
from tests.pipeline.dashboard.web.browser.served import Served

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_STEPS = "[data-testid=stVegaLiteChart] svg .mark-rect path[aria-label*='OffsetCommit']"


@pytest.fixture(scope="module")
def served(sampled: Path, samples_served: Served) -> tuple[Served, str]:
    stuck = query(sampled, "SELECT finding_id FROM gold.findings WHERE rule = 'stuck_commit'").to_pylist()
    return samples_served, stuck[0]["finding_id"]


def test_from_the_evidence_of_a_finding_to_its_connection_and_into_an_exchange(
    browser: WebDriver, served: tuple[Served, str]
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    running, finding = served
    browser.get(f"{running.url}/exchanges?finding={finding}")
    click(browser, "[data-testid=stMain] a", "Its connection as a sequence")
    wait_for(browser, "h1", "Sequence")
    wait_for(browser, "[data-testid=stVegaLiteChart] svg", "payments-2 @24")

    def opened() -> str:
        step = browser.find_elements(By.CSS_SELECTOR, _STEPS)[2]
        words = step.get_attribute("aria-label") or ""
        ActionChains(browser).move_to_element(step).click().perform()
        return words

    words = again_when_replaced(opened)
    wait_for_address(browser, "/exchanges?")
    assert "OffsetCommit" in wait_for(browser, "h2", "OffsetCommit")
    assert "payments" in words
