"""One exchange: its figures, both bodies as JSON, and its frames byte by byte."""

from __future__ import annotations

import io
import re
from typing import Any

import duckdb
import orjson
import streamlit as st

from decoder.explain.explanation import Explanation
from pipeline.analysis.descriptions import ProtocolDescribers, described
from pipeline.commands.messages.tree import MOST_FIELDS, MOST_FRAME, explained_row, show_message
from pipeline.dashboard.queries.traffic.exchanges import frames, latency_in_words, topics
from pipeline.dashboard.queries.traffic.neighbours import neighbours
from pipeline.dashboard.web.format import clock, code, plain
from pipeline.dashboard.web.page_context import draw_text, link
from pipeline.dashboard.web.parts.exchange_addresses import compare_address, sequence_address
from pipeline.dashboard.web.zone import zoned
from pipeline.humanize import size
from pipeline.terminal.console import Console, printable

_MOST_TEXT = 200_000
"""Characters of a body that a browser is given."""
_LINES, _HEIGHT = 18, 420
"""A longer text is scrolled, in a box of this many pixels."""
_MARK = "    ◀"
_MOST_MARKED = 50
_WRONG = re.compile(r'^\s*"(?:errorCode|code)": (?!0,?$)-?\d|^\s*"(?:errmsg|codeName)": |^\s*"ok": 0(?:\.0)?,?$')
_DECISIVE = re.compile(
    r'^\s*"(?:committedOffset|fetchOffset|baseOffset|highWatermark|lastStableOffset|generationId|memberEpoch)": '
)
_WIDTH = 140
"""Fields that are shown of a frame, and characters of a line."""


def show_exchange(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> None:
    """Draw one row of ``silver.exchanges``: a sentence, facts, the ways on, then its messages, folded."""
    version = "" if exchange["api_version"] is None else f" v{exchange['api_version']}"
    st.header(f"{code((exchange['api_name'] or 'not known') + version)}", anchor=False)
    client = f"{exchange['client_ip']}:{exchange['client_port']}"
    server = f"{exchange['server_ip']}:{exchange['server_port']}"
    draw_text(f"{exchange['client_id'] or client} asks {server}: {_in_words(connection, exchange)}")
    facts = {
        zoned("Time"): f"{clock(exchange['ts'])}.{exchange['ts']:%f}",
        "Latency": latency_in_words(exchange),
        "Status": exchange["status"],
        "Errors": ", ".join(exchange["error_names"] or []) or "none",
        "Client": f"{exchange['client_id'] or ''} at {client}".strip(),
        "Server": server,
        "Exchange": exchange["exchange_id"],
        "Connection": exchange["connection_id"],
    }
    columns = st.columns(4)
    for index, (label, value) in enumerate(facts.items()):
        columns[index % 4].caption(label)
        columns[index % 4].text(printable(value))
    _ways(connection, exchange)
    left, right = st.columns(2)
    with left:
        _body("Request", exchange["request_body"], exchange["request_size"], exchange["request_status"])
        _embedded(exchange["request_embedded"])
    with right:
        _body("Response", exchange["response_body"], exchange["response_size"], exchange["response_status"])
        _embedded(exchange["response_embedded"])
    if st.toggle("Byte by byte", key="bytes", help="Each field with its bytes, as `wirelake explain` shows it."):
        _explain(connection, exchange)


def _in_words(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> str:
    """Question and answer in the words of ``wirelake decode``."""
    describers = ProtocolDescribers()
    describers.note_topics(topics(connection))
    return described(exchange, describers)


def _ways(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> None:
    """To its connection, to what comes before and after, and what it can be compared with."""
    near = neighbours(connection, exchange)
    with st.container(horizontal=True):
        link("sequence", "Its connection as a sequence", "swap_vert",
             **sequence_address(exchange["exchange_id"], exchange["ts"]))  # fmt: skip
        _way("Previous on its connection", "arrow_back", near.before)
        _way("Next on its connection", "arrow_forward", near.after)
    if near.subject_before or near.subject_after:
        with st.container(horizontal=True):
            _way(f"Previous of {plain(near.subject)}", "arrow_back", near.subject_before)
            _way(f"Next of {plain(near.subject)}", "arrow_forward", near.subject_after)
    with st.container(horizontal=True):
        for label, other in (
            ("Compare with the one of its api before it", None),
            (f"Compare with the previous of {plain(near.subject)}", near.subject_before),
            ("Compare with the last without an error", near.without_error),
        ):
            if other is not None or label.endswith("before it"):
                address = compare_address(exchange["exchange_id"], other, exchange["ts"])
                link("compare", label, "compare", **address)


def _way(label: str, icon: str, exchange_id: str | None) -> None:
    if exchange_id is not None:
        link("exchanges", label, icon, exchange=exchange_id)


def _body(title: str, body: str | None, length: int | None, status: str | None) -> None:
    state = f", {size(length)}, {status}" if length is not None else ""
    if body is None:
        st.markdown(f"**{title}**{state}")
        st.caption("not seen" if length is None else "did not decode, or was removed")
        return
    with st.expander(f"**{title}**{state}"):
        _json(body)


def _embedded(text: str | None) -> None:
    if text and text != "[]":
        st.caption("Messages inside its bytes fields")
        _json(text)


def _json(text: str) -> None:
    try:
        shown = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        shown = text
    _text(marked(shown[:_MOST_TEXT]), wraps=True)
    if len(shown) > _MOST_TEXT:
        st.caption(f"The first {_MOST_TEXT:,} of {len(shown):,} characters; `wirelake sql` prints all.")


def marked(text: str) -> str:
    """Indented JSON with a mark at lines that decide: errors, or else what is committed, fetched or written."""
    lines = text.split("\n")
    wrong = [index for index, line in enumerate(lines) if _WRONG.search(line)]
    decisive = wrong or [index for index, line in enumerate(lines) if _DECISIVE.search(line)]
    for index in decisive[:_MOST_MARKED]:
        lines[index] += _MARK
    return "\n".join(lines)


def _text(text: str, *, wraps: bool) -> None:
    long = text.count("\n") > _LINES
    # In no language: colours that Streamlit has for JSON have a contrast of 2.7 : 1 on a light page.
    st.code(text, language=None, height=_HEIGHT if long else "content", wrap_lines=wraps)


def _explain(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> None:
    found = frames(connection, exchange)
    if not found:
        st.info(
            "Its raw frames are not in the lake any more: they are kept for a shorter time than what follows from them."
        )
    for frame in found:
        st.markdown(f"**{frame['direction'].capitalize()}**, {size(frame['size'])}")
        explanation = explained_row(frame)
        if explanation is None:
            st.caption(f"Longer than {size(MOST_FRAME)}: use `wirelake explain`.")
            continue
        _text(as_lines(explanation, frame["frame"]), wraps=False)


def as_lines(explanation: Explanation, frame: bytes) -> str:
    """What each byte of a frame means, as the lines of ``wirelake explain``; of many fields the first and the last."""
    text = io.StringIO()
    show_message(explanation, frame, 0, Console(file=text, width=_WIDTH, color_system=None), MOST_FIELDS)
    return text.getvalue()
