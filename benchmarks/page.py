"""How long does the page take? ``python -m benchmarks.page LAKE…``: of the demo, and one of ``benchmarks.big_lake``.

Pages are asked for by their address, each time in a new session; searches are typed on a page that is open, and their
time runs from the key Enter. First words: the title is there; complete: the page's script has ended, and nothing of
what it drew is still to come. What a lake was asked is kept until it changes, so the first load is apart. CPU is
that of the server alone.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from rich.table import Table as Grid

from benchmarks.browser import Timed, Watched, watch
from benchmarks.candidates import CONSOLE
from tests.pipeline.dashboard.web.browser.browsing import DONE, TO_COME

_TIMES = 5
_TITLE = "const title = document.querySelector('h1'); return title && title.innerText;"
_COMPLETE = f"""
const isThere = selector => document.querySelector(selector) !== null;
return isThere('{DONE}') && !isThere('{TO_COME}') && isThere('h1');
"""
_COUNTED = "[...document.querySelectorAll('[data-testid=stCaptionContainer]')].map(each => each.innerText).join('|')"
_PAGES = {
    "home": "/",
    "search for a name": "/search?q=billing",
    "exchanges of the last day": "/exchanges",
    "exchanges of a topic, all days": "/exchanges?topic=payments&range=all",
}
_TYPED = {"Topic": "payments", "Group": "billing", "Client id contains": "billing"}
"""What is typed into which box above the exchanges."""
_ONLY = """
const at = [...document.querySelectorAll('table.rows th')].findIndex(heading => heading.dataset.field === 'server');
document.querySelector('table.rows tbody tr').children[at].querySelector('[data-narrow=only]').click();
"""
"""Clicks *=* at the server of the newest exchange."""


def main(lakes: list[str]) -> None:
    """Measure each lake in turn."""
    if not lakes:
        raise SystemExit((__doc__ or "").splitlines()[0])
    for lake in lakes:
        grid = Grid("what", "first words", "complete", "CPU", "the first time", title=f"Median of {_TIMES}, {lake}")
        with watch(Path(lake)) as watched:
            for name, address in _PAGES.items():
                _row(grid, name, partial(_loaded, watched, address))
            _row(grid, "a name, typed on the home page", partial(_name_typed, watched))
            _row(grid, "a group, clicked in the list of all", partial(_clicked, watched))
            for label, value in _TYPED.items():
                _row(grid, f"exchanges, {label.lower()} typed", partial(_typed, watched, label, value))
            _row(grid, "exchanges, = clicked at a server", partial(_narrowed, watched))
        CONSOLE.print(grid)


_Times = tuple[float | None, float, float]
"""Seconds to the first words (None: they were there before) and until all is drawn, and the server's CPU seconds."""


def _loaded(watched: Watched, address: str) -> _Times:
    timed = watched.load(address)
    return timed.reached(_TITLE), timed.reached(_COMPLETE), timed.cpu()


def _name_typed(watched: Watched) -> _Times:
    watched.load("/").reached(_COMPLETE)
    timed = _enter(watched, "Search for a name", "billing")
    timed.reached("return location.pathname.endsWith('/search')")
    return None, timed.reached(_COMPLETE), timed.cpu()


def _clicked(watched: Watched) -> _Times:
    watched.load("/groups?range=all").reached(_COMPLETE)
    timed = watched.now()
    watched.browser.execute_script("document.querySelector('table.rows tbody a').click()")
    timed.reached("return location.pathname.endsWith('/group')")
    return None, timed.reached(_COMPLETE), timed.cpu()


def _narrowed(watched: Watched) -> _Times:
    watched.load("/exchanges").reached(_COMPLETE)
    before = watched.browser.execute_script(f"return {_COUNTED}")
    timed = watched.now()
    watched.browser.execute_script(_ONLY)
    timed.reached(f"return {_COUNTED} !== {json.dumps(before)}")
    return None, timed.reached(_COMPLETE), timed.cpu()


def _typed(watched: Watched, label: str, value: str) -> _Times:
    watched.load("/exchanges").reached(_COMPLETE)
    before = watched.browser.execute_script(f"return {_COUNTED}")
    timed = _enter(watched, label, value)
    timed.reached(f"return {_COUNTED} !== {json.dumps(before)}")
    return None, timed.reached(_COMPLETE), timed.cpu()


def _enter(watched: Watched, label: str, value: str) -> Timed:
    """Type into a box; the time runs from Enter."""
    from selenium.webdriver.common.by import By  # noqa: PLC0415 - not without a browser
    from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

    box = watched.browser.find_element(By.CSS_SELECTOR, f"input[aria-label='{label}']")
    box.send_keys(value)
    timed = watched.now()
    box.send_keys(Keys.ENTER)
    return timed


def _row(grid: Grid, name: str, measure: Callable[[], _Times]) -> None:
    first = measure()
    words, complete, cpu = zip(*(measure() for _ in range(_TIMES)), strict=True)
    grid.add_row(name, _median(words), _median(complete), _median(cpu), f"{first[1]:.2f}")


def _median(times: Iterable[float | None]) -> str:
    known = [each for each in times if each is not None]
    return f"{statistics.median(known):.2f}" if known else ""


if __name__ == "__main__":
    main(sys.argv[1:])
