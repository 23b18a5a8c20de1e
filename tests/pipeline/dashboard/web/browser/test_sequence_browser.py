"""A connection as a sequence in a real browser: a finding leads there, and a click on a step opens its exchange."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.settings import StreamSettings
from tests.paths import CAPTURES
from tests.pipeline.dashboard.web.browser.browsing import click, open_browser, wait_for, wait_for_address
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_STEPS = "[data-testid=stVegaLiteChart] svg .mark-rect path[aria-label*='OffsetCommit']"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    require_streamlit()
    require_browser()
    lake = tmp_path_factory.mktemp("diagnosed") / "lake"
    tables = diagnose(read_inputs([str(CAPTURES / "stuck_commit.pcap")]), StreamSettings()).tables
    write_lake(lake, tables)
    stuck = next(row for row in tables["gold.findings"].to_pylist() if row["rule"] == "stuck_commit")
    with serve(lake) as running:
        yield running, stuck["finding_id"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    require_browser()
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


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
    step = browser.find_elements(By.CSS_SELECTOR, _STEPS)[2]
    said = step.get_attribute("aria-label") or ""
    ActionChains(browser).move_to_element(step).click().perform()
    wait_for_address(browser, "/exchanges?")
    assert "OffsetCommit" in wait_for(browser, "h3", "OffsetCommit")
    assert "payments" in said
