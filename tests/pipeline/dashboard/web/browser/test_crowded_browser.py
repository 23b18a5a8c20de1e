"""Pictures of groups with few members and many, many partitions, long names and names from right to left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from pipeline.tables import ASSIGNMENTS, EXCHANGES, OFFSET_TIMELINE, STATE_EVENTS, TABLES
from tests.pipeline.dashboard.web.browser.browsing import wait_until_drawn
from tests.pipeline.dashboard.web.browser.screens import LOOKS, Look, look_as, widths
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.pipeline.rows import T0, row, write
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

LONG = "consumer-of-the-orders-service-in-region-eu-central-1-availability-zone-"
ARABIC, HEBREW = "مستهلك-الفواتير-", "תשלומים-"
GROUPS = {
    "one": (1, 1, "c", "t"), "four": (4, 4, "c", "t"), "thirty": (30, 40, "c", "orders-of-all-shops-of-the-world-"),
    "long": (7, 5, LONG, LONG), "קבוצה": (5, 6, ARABIC, HEBREW),
}  # fmt: skip
"""By group: members, partitions, begins of the names of clients and of the topic."""
_BARS = """
const bars = [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg .mark-rect.role-mark path')];
return bars.filter(bar => (bar.getAttribute('aria-label') || '').includes('owner:'))
           .map(bar => bar.getBoundingClientRect().height);
"""
_OUTSIDE = """
return [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg')].flatMap(svg => {
  const room = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < room.left - 2 || box.right > room.right + 2);
  }).map(text => text.textContent);
});
"""
_LINE = "[...document.querySelectorAll('.wirelake-crosshair')].find(line => line.style.display == 'block')"


def _of_group(
    name: str, members: int, partitions: int, client: str, topic: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(partitions):
        member = f"{client}{number % members}"
        ids = {"client_id": member, "member_id": f"{member}-id"}
        about: dict[str, Any] = {"cluster": "k", "group_id": name, "generation": 1, "group_protocol": "classic"}
        yield ASSIGNMENTS.full_name, row(
            ASSIGNMENTS, **about, member_id=ids["member_id"], topic=topic, partition=number, first_ts=T0,
            last_ts=T0 + timedelta(seconds=60),
        )  # fmt: skip
        yield (
            STATE_EVENTS.full_name,
            row(STATE_EVENTS, **about, **ids, exchange_id=f"j {name} {number}", kind="join", ts=T0, error_code=0),
        )
        for second in (5, 30, 60):
            yield OFFSET_TIMELINE.full_name, row(
                OFFSET_TIMELINE, cluster="k", group_id=name, **ids, topic=topic, partition=number, kind="committed",
                exchange_id=f"c {name} {number} {second}", ts=T0 + timedelta(seconds=second), event_offset=second,
                committed_offset=second, high_watermark=100 * number + second, lag=100 * number, lag_seconds=1.0,
            )  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    lake = tmp_path_factory.mktemp("crowded") / "lake"
    filled: dict[str, list[dict[str, Any]]] = {
        EXCHANGES.full_name: [row(EXCHANGES, exchange_id=f"e{n}", ts=T0 + timedelta(seconds=n)) for n in (0, 60)]
    }
    for name, shape in GROUPS.items():
        for table, one in _of_group(name, *shape):
            filled.setdefault(table, []).append(one)
    for name, table in TABLES.items():
        write(lake, table, filled.get(name, []))
    with serve(lake) as running:
        yield running


@pytest.mark.parametrize("look", LOOKS[:2], ids=lambda look: look.name)
@pytest.mark.parametrize("group", GROUPS)
def test_each_owner_has_a_bar_and_every_name_its_room(
    browser: WebDriver, served: Served, group: str, look: Look
) -> None:
    look_as(browser, look)
    browser.get(f"{served.url}/group?{urlencode({'range': 'all', 'group': group})}")
    wait_until_drawn(browser)
    bars = browser.execute_script(_BARS)
    assert len(bars) == GROUPS[group][1]
    assert min(bars) >= 8, "CSS pixels"
    assert browser.execute_script(_OUTSIDE) == []
    assert widths(browser)[0] == look.width


def test_one_line_leads_through_all_charts_of_a_group(browser: WebDriver, served: Served) -> None:
    from selenium.webdriver.common.action_chains import ActionChains  # noqa: PLC0415

    look_as(browser, LOOKS[0])
    browser.get(f"{served.url}/group?{urlencode({'range': 'all', 'group': 'four'})}")
    wait_until_drawn(browser)
    charts = browser.find_elements("css selector", "[data-testid=stVegaLiteChart] svg")
    ActionChains(browser).move_to_element(charts[0]).perform()
    height, text = browser.execute_script(f"const l = {_LINE}; return [l.getBoundingClientRect().height, l.innerText]")
    first, last = charts[0].rect, charts[-1].rect
    assert height > (last["y"] - first["y"]) * 0.8, "through all charts, whichever the pointer is on"
    assert text.startswith("12:00:")
