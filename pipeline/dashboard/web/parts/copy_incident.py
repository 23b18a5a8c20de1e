"""Draws what of an incident is taken elsewhere: its link, its texts, and its pictures as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import altair as alt
import streamlit as st

from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.parts.styles import Markdown, Plain, Slack, Style
from pipeline.dashboard.web.parts.ticket import ticket

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

_STYLES: tuple[tuple[str, Style], ...] = (("Markdown", Markdown()), ("Slack", Slack()), ("Plain text", Plain()))
_WIDTH, _HEIGHT = 640, 380
"""CSS pixels of what opens, and of a text in it."""
_SCALE = 2
"""Pixels of a PNG for each of the drawing."""
Picture = Callable[[], "alt.TopLevelMixin"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Where the pictures go, once they are known; None: they cannot be made into files here."""

    pictures: DeltaGenerator | None

    def add(self, name: str, draw: Picture, key: str) -> None:
        """Offer a picture as SVG and PNG.

        Args:
            name: of it, ours.
            draw: makes it, whole, with its width; called when somebody asks for the file.
            key: begin of the files' names.
        """
        if self.pictures is None:
            return
        with self.pictures.container(horizontal=True, vertical_alignment="center"):
            st.markdown(name, width="stretch")
            for kind, mime in (("svg", "image/svg+xml"), ("png", "image/png")):
                st.download_button(
                    kind.upper(), partial(_file, draw, kind), f"{key}.{kind}", mime, key=f"{key} {kind}",
                    on_click="ignore",
                )  # fmt: skip


def draw_copy(row: dict[str, Any], findings: Sequence[IncidentFinding], address: str) -> Copies:
    """Draw the button that opens it.

    Args:
        row: of ``gold.incidents``.
        findings: of it, in order.
        address: of its page; empty: not known.
    """
    has_files = find_spec("vl_convert") is not None
    with st.popover("Copy", icon=":material/content_copy:", width="content"):
        names = [*(["Link"] if address else []), *(name for name, _ in _STYLES), *(["Pictures"] if has_files else [])]
        tabs = dict(zip(names, st.tabs(names, width=_WIDTH), strict=True))
        if address:
            tabs["Link"].code(address, language=None, wrap_lines=True)
        for name, style in _STYLES:
            tabs[name].code(ticket(row, findings, address, style), language=None, wrap_lines=True, height=_HEIGHT)
        pictures = tabs["Pictures"].container() if has_files else None
    return Copies(pictures)


def _file(draw: Picture, kind: str) -> bytes:
    """A picture as a file."""
    import vl_convert  # noqa: PLC0415 - large, and only for who takes a picture away

    spec = draw().to_dict()
    if kind == "svg":
        return bytes(vl_convert.vegalite_to_svg(spec), "utf-8")
    return bytes(vl_convert.vegalite_to_png(spec, scale=_SCALE))
