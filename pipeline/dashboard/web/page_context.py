"""What every page has: its session's connection, the span that is looked at, links that keep it, and its errors."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, cast

import duckdb
import streamlit as st

from pipeline.analysis.safety.guard import InternalError, Noted, noting
from pipeline.dashboard.queries.scope import NotThereYetError, Scope
from pipeline.dashboard.sql import Answers
from pipeline.dashboard.web.format import between, code, plain
from pipeline.errors import UserError
from pipeline.lake.path_checks import is_of_diagnose
from pipeline.terminal.console import printable

LAKE = "WIRELAKE_LAKE"
"""The environment variable that names the lake."""
_KEPT = ("range", "from", "to", "only", "protocol", "refresh", "times")
"""Parameters of the address that go with every link."""
_WEB = Path(__file__).parent
_SCRIPTS = {file.stem: file.relative_to(_WEB).as_posix() for file in (_WEB / "page").rglob("[a-z]*.py")}
"""By the name of a page, which is in its address, its script as Streamlit calls it."""
_LOG = logging.getLogger(__name__)
T = TypeVar("T")
TROUBLE, HERE = "trouble", "here"
"""What of the session holds why nothing can be shown, and what is looked at."""


@dataclass(frozen=True, slots=True)
class PageContext:
    """What is looked at in this run of the page.

    Attributes:
        connection: to what can be read of the lake.
        scope: the part of it.
        oldest, newest: times of the first and the last that the whole lake has seen.
        taken: when the lake was looked at.
        unreadable: tables that cannot be read, with the reason.
        answers: what was asked of the lake as it is now, in this or another session.
    """

    connection: duckdb.DuckDBPyConnection
    scope: Scope
    oldest: datetime
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


def run(draw: Callable[[PageContext], None], heading: str | None = None) -> None:
    """Draw a page, or explain in plain words why there is nothing to draw.

    Args:
        draw: the page.
        heading: the title where there is nothing to draw, of a page that else draws its own.
    """
    here = cast("PageContext | None", st.session_state.get(HERE))
    if heading is not None and (here is None or here.scope.start > here.scope.end):
        st.title(heading, anchor=False)
    if trouble := st.session_state.get(TROUBLE):
        st.error(plain(trouble))
        return
    if here is None:
        st.info(f"This lake has no exchanges. {_how_to_fill()}")
        return
    if here.scope.start > here.scope.end:
        st.warning("The time range ends before it begins.")
        return
    _warn_of_unreadable(here.unreadable)
    part(lambda: draw(here))


def part(draw: Callable[[], None]) -> None:
    """Draw a part of a page; where it cannot be drawn, a sentence why, and the rest of the page is drawn.

    A fault of ours is named by its class and line, here and in the log of the server; its message may quote payload.
    """
    noted = Noted()
    try:
        with noting(noted):
            draw()
    except NotThereYetError as error:
        st.info(f"{plain(str(error))} {_how_to_fill()}")
    except UserError as error:
        st.info(plain(str(error)))
    except Exception as error:
        noted.add([InternalError.of(error, "this part of the page")])
    for failed in noted.errors:
        _LOG.warning("%s", failed)
        advice = "" if failed.is_excess else " Please report this: it is a fault of Wirelake."
        st.error(f"{plain(str(failed))}.{advice}")


def lake_place() -> str:
    """The lake's folder, with the way to it, or its URL: as a command takes it."""
    place = os.environ[LAKE]
    return place if "://" in place else str(Path(place).absolute())


def _how_to_fill() -> str:
    """What adds to this lake what it lacks."""
    place = lake_place()
    if is_of_diagnose(place):
        return "`wirelake diagnose --lake` wrote it and replaces it as a whole when it runs again."
    return f"Run {code(f'wirelake stream --landing DIR --lake {quote(place)}')} with the landing zone of its captures."


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
        if is_of_diagnose(lake_place()):
            st.markdown("Run `wirelake diagnose` with `--lake` again: it replaces the whole lake.")
            return
        st.markdown(
            "Silver and gold follow from `bronze.frames`: move the folder of the damaged table away, and "
            "`wirelake backfill` makes it again. Frames come again from the landing zone, by `wirelake stream` into an "
            "empty lake."
        )


def choose(
    place: Any, label: str, key: str, options: Sequence[str], first: str | None, keys: Sequence[str]
) -> str | None:
    """A box to choose from, whose choice is in the address once somebody made it.

    Streamlit's own binding leaves out what is chosen at first, which here follows from the data and may be another one
    tomorrow. What was not chosen stays out: each change of the address is a step of the browser's way back.

    Args:
        place: where the box goes, e.g. a column.
        label: what is chosen.
        key: name in the address.
        options: not empty.
        first: what is chosen while the address states nothing, if it is one of them.
        keys: those of all boxes that belong together, from left to right, whose choices go into the address with this
            one.

    Returns:
        What is chosen; None: the address names what is none of the options, and nothing is shown in its place.
    """
    state, asked = st.session_state, st.query_params.get(key)
    is_new = asked != state.get(f"in address {key}")  # a link, or the browser's way back
    state[f"in address {key}"] = asked
    follows = state.pop(f"follows {key}", False)
    if asked in options and (is_new or key not in state):
        state[key] = asked
    elif asked is not None and asked not in options and not follows:
        state[key] = None
    elif state.get(key) not in options:
        state[key] = first if first in options else options[0]
        if asked is not None:
            st.query_params[key] = state[f"in address {key}"] = state[key]
    chosen: str | None = place.selectbox(
        label, options, index=None if state[key] is None else 0, key=key, placeholder="choose",
        on_change=_note_chosen, args=(key, keys),
    )  # fmt: skip
    return chosen


def _note_chosen(key: str, keys: Sequence[str]) -> None:
    """What a person chose goes into the address; the boxes to its right follow, whatever they showed."""
    put_in_address(keys)
    for other in keys[keys.index(key) + 1 :]:
        st.session_state[f"follows {other}"] = True


def put_in_address(keys: Sequence[str]) -> None:
    """Put what is chosen in the boxes of these keys into the address."""
    for key in keys:
        if st.session_state.get(key) is not None:
            st.query_params[key] = st.session_state[f"in address {key}"] = st.session_state[key]


def say_absent(here: PageContext, page: str, what: str, key: str, in_scope: Callable[[Scope], Collection[str]]) -> None:
    """Say that what the address names was not seen: in this time range, or in the whole lake. Nothing replaces it.

    Args:
        here: what is looked at.
        page: name of its file, without ``.py``.
        what: the noun, e.g. ``group``.
        key: its name in the address.
        in_scope: the names that there are in a span; asked of the whole lake.
    """
    name = st.query_params.get(key) or ""
    whole = replace(here.scope, start=here.oldest, end=here.newest)
    if (whole.start, whole.end) == (here.scope.start, here.scope.end) or name not in in_scope(whole):
        cluster = f"cluster {code(here.scope.cluster)} of " if here.scope.cluster else ""
        st.warning(f"There is no {what} {code(name)} in {cluster}this lake.")
        return
    st.info(f"Nothing was seen of {what} {code(name)} from {between(here.scope.start, here.scope.end)}.")
    link(page, "Look in the whole lake", "zoom_out", **{**st.query_params.to_dict(), "range": "all"})


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


def link_exactly(page: str, label: str, **parameters: str) -> None:
    """A link to a page with these parameters and no others, to drop one of those that the address has."""
    st.page_link(_SCRIPTS[page], label=label, icon=":material/filter_alt_off:", query_params=parameters)


def kept() -> dict[str, str]:
    """Parameters of the address that go with every link, as they are now."""
    return {name: value for name in _KEPT if (value := st.query_params.get(name))}


def go(page: str, **parameters: str) -> None:
    """Go to another page and state what to show there; the controls keep the time range and put it into the address."""
    st.switch_page(_SCRIPTS[page], query_params=parameters)


def look_at(scope: Scope) -> None:
    """Make this span the time range; for callbacks, which run before the controls are drawn."""
    times = fixed(scope)
    if st.session_state.get("range") != times["range"]:  # the boxes of both times, which keep the address, come again
        st.query_params.update({name: times[name] for name in ("from", "to")})
    st.session_state.update(times)
