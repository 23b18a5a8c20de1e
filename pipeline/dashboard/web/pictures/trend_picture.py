"""What grows, as a small band from the least to the greatest value of each time, without axes. Numbers in, HTML out.

It begins at zero. An image by itself: a list has one for each line, and a chart for each would take a second.
"""

from __future__ import annotations

import base64
from html import escape

from pipeline.dashboard.queries.overview.trends import Trend
from pipeline.dashboard.web.pictures.colours import palette

_WIDTH, _HEIGHT = 100, 30
"""Units of the drawing, which is stretched to the room that it has."""
_ABOVE = 12
"""CSS pixels above it, so that it is beside the middle of a line."""


def trend_picture(trend: Trend, words: str, *, height: int, dark: bool) -> str:
    """A trend as an image in HTML, as wide as its place.

    Args:
        trend: what grows.
        words: what it shows, for those who do not see it, and for who points at it.
        height: in CSS pixels.
        dark: whether it is on a dark page.
    """
    ink, named = palette(dark=dark).ink, escape(words, quote=True)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">'
        f'<path d="{outline(trend)}" fill="{ink}" fill-opacity="0.25" stroke="{ink}" stroke-width="1.25" '
        'stroke-linejoin="round" vector-effect="non-scaling-stroke"/></svg>'
    )
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    style = f"display:block;width:100%;height:{height}px;margin-top:{_ABOVE}px"
    return f'<img alt="{named}" title="{named}" src="{source}" style="{style}">'


def outline(trend: Trend) -> str:
    """The path around the band: along the greatest values, and back along the least."""
    first, last = trend.points[0][0], trend.points[-1][0]
    whole = max((last - first).total_seconds(), 1e-6)
    band = trend.band or tuple((value, value) for _, value in trend.points)
    most = max((high for _, high in band), default=0) or 1
    across = [(ts - first).total_seconds() / whole * _WIDTH for ts, _ in trend.points]
    above = [(x, high) for x, (_, high) in zip(across, band, strict=True)]
    below = [(x, low) for x, (low, _) in zip(across, band, strict=True)]
    corners = [f"{x:.1f},{_HEIGHT - 1 - value / most * (_HEIGHT - 2):.1f}" for x, value in (*above, *reversed(below))]
    return f"M{'L'.join(corners)}Z"
