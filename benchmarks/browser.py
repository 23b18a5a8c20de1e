"""A page timed in Chromium: how long until something is there, and what the server worked for it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pipeline.dashboard.web.browser.browsing import open_browser
from tests.pipeline.dashboard.web.browser.served import Served, serve

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 120
_SETTLE_SECONDS = 1.0
"""Until the session of the page before has ended."""


@dataclass(frozen=True)
class Timed:
    """What began, and what it has taken since."""

    watched: Watched
    began: float
    used: float

    def reached(self, condition: str) -> float:
        """Seconds from the beginning until ``condition``, the body of a function, returns something true.

        Raises:
            RuntimeError: it does not within two minutes.
        """
        while not self.watched.browser.execute_script(condition):
            if time.perf_counter() - self.began > _PATIENCE_SECONDS:
                raise RuntimeError(f"the page never gets to {condition}")
            time.sleep(_LOOK_SECONDS)
        return time.perf_counter() - self.began

    def cpu(self) -> float:
        """CPU seconds of the server since the beginning."""
        return self.watched.cpu() - self.used


@dataclass(frozen=True)
class Watched:
    """A browser that looks at a server."""

    browser: WebDriver
    served: Served

    def cpu(self) -> float:
        """CPU seconds of the server until now."""
        stat = Path(f"/proc/{self.served.process.pid}/stat").read_text(encoding="ascii")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def now(self) -> Timed:
        """Begin to take the time."""
        return Timed(self, time.perf_counter(), self.cpu())

    def load(self, address: str) -> Timed:
        """Ask for an address in a new session, and take the time since."""
        self.browser.get("about:blank")
        time.sleep(_SETTLE_SECONDS)
        began = self.now()
        self.browser.get(self.served.url + address)
        return began


@contextmanager
def watch(lake: Path) -> Iterator[Watched]:
    """Serve a lake, and look at it; Python's imports, once for all who look, are over."""
    with serve(lake) as served, tempfile.TemporaryDirectory() as profile, open_browser(Path(profile)) as browser:
        browser.get(served.url + "/query")
        time.sleep(5 * _SETTLE_SECONDS)
        yield Watched(browser, served)
