"""What every page has: its session's connection, the span that is looked at, links that keep it, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import streamlit as st

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.sql import Answers
from pipeline.dashboard.web.words import code, plain
from pipeline.errors import UserError
from pipeline.terminal import printable

LAKE = "WIRELAKE_LAKE"
"""The environment variable that names the lake."""
_KEPT = ("range", "from", "to", "only", "protocol", "refresh", "times")
"""Parameters of the address that go with every link."""
_WEB = Path(__file__).parent
_SCRIPTS = {file.stem: file.relative_to(_WEB).as_posix() for file in (_WEB / "page").rglob("[a-z]*.py")}
"""By the name of a page, which stands in its address, its script as Streamlit calls it."""
T = TypeVar("T")
TROUBLE, HERE = "trouble", "here"
"""What of the session holds why nothing can be shown, and what is looked at."""


@dataclass(frozen=True, slots=True)
class Here:
    """What is looked at in this run of the page.

    Attributes:
        connection: to what can be read of the lake.
        scope: the part of it.
        newest: time of the last that the whole lake has seen.
        taken: when the lake was looked at.
        unreadable: tables that cannot be read, with the reason.
        answers: what was asked of the lake as it is now, in this or another session.
    """

    connection: duckdb.DuckDBPyConnection
    scope: Scope
    newest: datetime
    taken: datetime
    unreadable: Mapping[str, str]
    answers: Answers

    def once(self, ask: Callable[..., T], *about: Any) -> T:
        """What ``ask`` answers about this part of the lake, asked once as long as the lake is as it is.

        Args:
            ask: called with the connection, the scope and ``about``; what it returns is not changed by anybody.
            about: what else it depends on, distinguished by value.
        """
        return self.answers.once(ask, self.connection, self.scope, *about)


def run(draw: Callable[[Here], None]) -> None:
    """Draw a page, or explain in plain words why there is nothing to draw."""
    if trouble := st.session_state.get(TROUBLE):
        st.error(plain(trouble))
        return
    here = cast("Here | None", st.session_state.get(HERE))
    if here is None:
        st.info("This lake has no exchanges yet. They come with `wirelake stream --landing DIR --lake DIR`.")
        return
    if here.scope.start > here.scope.end:
        st.warning("The time range ends before it begins.")
        return
    _warn_of_unreadable(here.unreadable)
    part(lambda: draw(here))


def part(draw: Callable[[], None]) -> None:
    """Draw a part of a page; where it cannot be drawn, a sentence why, and the rest of the page is drawn."""
    try:
        draw()
    except UserError as error:
        st.info(plain(str(error)))


def draw_text(*lines: str | None) -> None:
    """Draw lines with names of the wire in them, as they are: nothing is read, and no character hides or turns one.

    Args:
        lines: texts; None: what an older release did not write.
    """
    st.text("\n".join(printable(line) for line in lines if line is not None))


def _warn_of_unreadable(unreadable: Mapping[str, str]) -> None:
    if not unreadable:
        return
    names = ", ".join(code(name) for name in unreadable)
    st.warning(f"This lake is damaged: {names} cannot be read. What the others know is shown.")
    with st.expander("Why, and what helps"):
        for reason in unreadable.values():
            draw_text(reason)
        st.markdown(
            "Silver and gold follow from `bronze.frames`: move the folder of the damaged table away, and "
            "`wirelake backfill` makes it anew. Frames come again from the landing zone, by `wirelake stream` into an "
            "empty lake."
        )


def choose(place: Any, label: str, key: str, options: Sequence[str], first: str | None, keys: Sequence[str]) -> str:
    """A box to choose from, whose choice stands in the address once somebody made it.

    Streamlit's own binding leaves out what is chosen at first, which here follows from the data and may be another one
    tomorrow. What nobody chose stays out: each change of the address is a step of the browser's way back.

    Args:
        place: where the box goes, e.g. a column.
        label: what is chosen.
        key: name in the address.
        options: not empty.
        first: what is chosen while the address states nothing, if it is one of them.
        keys: those of all boxes that belong together, whose choices go into the address with this one.
    """
    state, asked = st.session_state, st.query_params.get(key)
    is_new = asked != state.get(f"in address {key}")  # a link, or the browser's way back
    state[f"in address {key}"] = asked
    if asked in options and (is_new or key not in state):
        state[key] = asked
    elif state.get(key) not in options:
        state[key] = first if first in options else options[0]
    chosen: str = place.selectbox(label, options, key=key, on_change=put_in_address, args=(keys,))
    return chosen


def put_in_address(keys: Sequence[str]) -> None:
    """Put what is chosen in the boxes of these keys into the address."""
    for key in keys:
        if key in st.session_state:
            st.query_params[key] = st.session_state[f"in address {key}"] = st.session_state[key]


def fixed(scope: Scope) -> dict[str, str]:
    """Parameters of the address for exactly this span, whatever comes later."""
    return {
        "range": "from … to",
        "from": f"{scope.start.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}Z",
        "to": f"{scope.end.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}Z",
    }


def link(page: str, label: str, icon: str, **parameters: str | int | None) -> None:
    """A link to another page that keeps the time range and states what to show there.

    Args:
        page: name of its file, without ``.py``.
        label: what is clicked; ours, not the wire's.
        icon: a name of Material's icons.
        parameters: of its address; None: not set.
    """
    given = {name: str(value) for name, value in parameters.items() if value is not None}
    st.page_link(_SCRIPTS[page], label=label, icon=f":material/{icon}:", query_params={**kept(), **given})


def kept() -> dict[str, str]:
    """Parameters of the address that go with every link, as they are now."""
    return {name: value for name in _KEPT if (value := st.query_params.get(name))}


def go(page: str, **parameters: str) -> None:
    """Go to another page and state what to show there; the controls keep the time range and put it into the address."""
    st.switch_page(_SCRIPTS[page], query_params=parameters)


def look_at(scope: Scope) -> None:
    """Make this span the time range; for callbacks, which run before the controls are drawn."""
    times = fixed(scope)
    if st.session_state.get("range") != times["range"]:  # the boxes of both times, which keep the address, come anew
        st.query_params.update({name: times[name] for name in ("from", "to")})
    st.session_state.update(times)
