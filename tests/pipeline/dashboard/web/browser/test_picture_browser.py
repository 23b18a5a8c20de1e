"""The picture of a stuck commit in a real browser: who is who, what a click opens, where a drag leads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.pipeline.dashboard.web.browser.browsing import (
    again_when_replaced,
    click,
    wait_for,
    wait_for_address,
    wait_for_change,
    wait_until_drawn,
)
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_PLACE = {"group": "billing", "topic": "payments", "partition": 2}
_CHART = "[data-testid=stVegaLiteChart] svg"
_POINTS = "[data-testid=stVegaLiteChart] svg .mark-symbol path[aria-label*='member: {}']"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    lake = diagnosed_lake(tmp_path_factory.mktemp("diagnosed") / "lake", "stuck_commit", "incidents/evicted")
    with serve(lake) as running:
        yield running


def points(browser: WebDriver, member: str) -> list[tuple[str | None, str | None]]:
    """Colour and words of each point of a member's commits."""
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    wait_for(browser, _POINTS.format(member))
    wait_until_drawn(browser)  # a picture that is drawn again has other points

    def found() -> list[tuple[str | None, str | None]]:
        elements = browser.find_elements(By.CSS_SELECTOR, _POINTS.format(member))
        return [(one.get_attribute("fill"), one.get_attribute("aria-label")) for one in elements]

    return again_when_replaced(found)


@pytest.mark.parametrize(
    ("scheme", "colours", "background"),
    [
        ("light", ("#0072B2", "#D55E00"), "rgba(255, 255, 255, 1)"),
        ("dark", ("#56B4E9", "#E69F00"), "rgba(23, 22, 20, 1)"),
    ],
)
def test_culprit_and_owner_have_colours_that_say_nothing_but_who(
    browser: WebDriver, served: Served, scheme: str, colours: tuple[str, str], background: str
) -> None:
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(f"{served.url}/partitions?{urlencode(_PLACE)}")
    drawn = {member: points(browser, member) for member in ("billing-1", "billing-2")}
    assert {member: {colour for colour, _ in found} for member, found in drawn.items()} == {
        "billing-1": {colours[0]},
        "billing-2": {colours[1]},
    }
    page = browser.find_element(By.CSS_SELECTOR, "[data-testid=stApp]")
    assert page.value_of_css_property("background-color") == background
    stale = [words or "" for _, words in drawn["billing-1"]]
    assert sum("offset: 24" in words for words in stale) > 20  # again and again, each a point of its own


@pytest.mark.parametrize(
    ("place", "member", "outcome"),
    [
        (_PLACE, "billing-1", "accepted"),
        ({"group": "ledger", "topic": "entries", "partition": 0}, "ledger-1, no member id", "rejected"),
    ],
)
def test_a_click_on_a_commit_opens_its_exchange(
    browser: WebDriver, served: Served, place: dict[str, object], member: str, outcome: str
) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    browser.get(f"{served.url}/partitions?{urlencode({'range': 'all', **place})}")
    points(browser, member)

    def opened() -> str:
        point = browser.find_elements(By.CSS_SELECTOR, _POINTS.format(member))[-1]
        words = point.get_attribute("aria-label") or ""
        ActionChains(browser).move_to_element(point).click().perform()
        return words

    words = again_when_replaced(opened)
    assert f"commit: {outcome}" in words
    address = wait_for_address(browser, "exchange=")
    (exchange,) = parse_qs(urlsplit(address).query)["exchange"]
    assert exchange in words
    assert "OffsetCommit" in wait_for(browser, "h2", "OffsetCommit")


def test_a_drag_looks_closer_and_stands_in_the_address(browser: WebDriver, served: Served) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    browser.get(f"{served.url}/partitions?{urlencode(_PLACE)}")
    points(browser, "billing-1")

    def drag() -> None:
        plot = browser.find_element(By.CSS_SELECTOR, _CHART)
        held = ActionChains(browser).move_to_element_with_offset(plot, 0, 40).click_and_hold()
        held.move_by_offset(100, 0).move_by_offset(100, 0).pause(0.3).release().perform()

    again_when_replaced(drag)
    address = wait_for_address(browser, "from=")
    query = parse_qs(urlsplit(address).query)
    assert query["range"] == ["from … to"]
    assert query["from"] < query["to"]
    assert query["group"] == ["billing"]
    caption = wait_for(browser, "[data-testid=stCaptionContainer]", "What was seen of this partition")
    assert "commits of group billing by billing-1, billing-2" in caption
    click(browser, "button", "Wider")
    wider = parse_qs(urlsplit(wait_for_change(browser, address)).query)
    assert wider["from"] < query["from"]
    assert wider["to"] > query["to"]


def test_evidence_of_a_chosen_time_leads_to_all_exchanges_of_it(browser: WebDriver, served: Served) -> None:
    browser.get(f"{served.url}/exchanges?{urlencode({'range': 'all', 'finding': 'gone'})}")
    click(browser, "button", "Search all exchanges instead")
    wait_for(browser, "[data-testid=stCaptionContainer]", "exchanges")
    assert "finding=" not in wait_for_address(browser, "range=all")


def test_an_incident_has_its_picture_and_leads_to_its_evidence(browser: WebDriver, served: Served) -> None:
    browser.get(served.url)
    click(browser, "summary", "sets group billing back")
    click(browser, "[data-testid=stMain] a", "What happened")
    wait_for_address(browser, "incident=")
    wait_for(browser, "[data-testid=stMarkdown]", "Now.")
    wait_for(browser, _CHART)
    click(browser, "[data-testid=stMain] a", "Evidence")
    assert wait_for(browser, "h1", "Exchanges") == "Exchanges"
