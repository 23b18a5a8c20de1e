"""Whether this release may read or write a lake: each table states the layout in which it was written."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import UserError
from pipeline.tables import LAYOUT, LAYOUT_PROPERTY

_SHOWN = 20


def demand_layout(lake: str, properties: Mapping[str, str | None]) -> None:
    """Refuse a table that a later release wrote in a layout of its own: it would be misread.

    Args:
        lake: the lake's folder or URL.
        properties: of the table, as its log states them.

    Raises:
        UserError: the layout is later than ours, or nonsense.
    """
    layout = properties.get(LAYOUT_PROPERTY) or str(LAYOUT)
    if not (layout.isascii() and layout.isdigit() and int(layout) <= LAYOUT):
        raise UserError(
            f"{lake} was written by a later release of Wirelake: its tables have layout {layout[:_SHOWN]}, this "
            f"release knows {LAYOUT}. Install the release that wrote it, or a later one: pip install --upgrade wirelake"
        )
