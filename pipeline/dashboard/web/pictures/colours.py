"""Colours that everybody can distinguish, and symbols beside them.

Members of a group get colours of Okabe and Ito's palette (*Color Universal Design*, 2008), the strongest against the
background first; no colour stands for good or bad. The log is drawn in ink, so that colour means member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.dashboard.queries.progress.members import MEMBERS, OTHERS


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme.

    Attributes:
        members: one for each member that a picture distinguishes.
        others: for those who share one.
        ink: lines of the log, texts, outlines.
        faint: what is behind: losses, rebalances.
        background: of the page, for contrast.
        shades: of heat maps, one hue: from what stands out a little from the background to what stands out most.
    """

    members: tuple[str, ...]
    others: str
    ink: str
    faint: str
    background: str
    shades: tuple[str, str]


LIGHT = Palette(
    members=("#0072B2", "#D55E00", "#CC79A7", "#009E73", "#E69F00", "#56B4E9"),
    others="#767676",
    ink="#1F2937",
    faint="#6B7280",
    background="#FFFFFF",
    shades=("#D3E3F3", "#08306B"),
)
DARK = Palette(
    members=("#56B4E9", "#E69F00", "#CC79A7", "#009E73", "#F0E442", "#D55E00"),
    others="#9CA3AF",
    ink="#E5E7EB",
    faint="#9CA3AF",
    background="#171614",
    shades=("#22394F", "#A8D5FF"),
)
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-right")
OTHERS_SYMBOL = "cross"
CROSSED = "M-1,-1L1,1M-1,1L1,-1"
STRUCK = "M-1.2,0L1.2,0"
"""Paths drawn over a symbol: of what was refused, and of what ended with its transaction."""


def palette(*, dark: bool) -> Palette:
    """That of a dark page or a light one."""
    return DARK if dark else LIGHT


def looks(labels: Sequence[str], colours: Palette) -> dict[str, tuple[str, str]]:
    """Colour and symbol of each label, in order; ``OTHERS`` has its own.

    Raises:
        ValueError: there are more labels than colours.
    """
    named = [label for label in labels if label != OTHERS]
    if len(named) > MEMBERS:
        raise ValueError(f"{len(named)} members cannot be distinguished by {MEMBERS} colours")
    found = dict(zip(named, zip(colours.members, SYMBOLS, strict=True), strict=False))
    return found | ({OTHERS: (colours.others, OTHERS_SYMBOL)} if OTHERS in labels else {})


def readable_on(colour: str) -> str:
    """Black or white, whichever is read better on ``colour`` (WCAG 2 contrast)."""
    light = luminance(colour)
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 to 1 (WCAG 2)."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
