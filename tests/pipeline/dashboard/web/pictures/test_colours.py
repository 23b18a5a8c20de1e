"""Can everybody tell members apart? Colours as people without one kind of cone see them."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from pipeline.dashboard.queries.progress.members import MEMBERS, OTHERS
from pipeline.dashboard.web.pictures.colours import (
    DARK,
    LIGHT,
    OTHERS_SYMBOL,
    SYMBOLS,
    Palette,
    looks,
    luminance,
    palette,
    readable_on,
)

Colour = tuple[float, ...]
_SEEN_BY: dict[str, tuple[Colour, ...]] = {
    # Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
    "everybody else": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
_FIRST_TWO, _ANY_TWO = 60, 15
"""Distances in CIELAB; 2.3 can just be noticed side by side."""
_GRAPHICS, _TEXT = 3.0, 4.5
"""Contrast that WCAG 2.2 demands of graphics (1.4.11) and of text (1.4.3)."""


def seen(colour: str, by: str) -> Colour:
    """CIELAB of what somebody sees."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in _SEEN_BY[by]
    )
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    f, g, h = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * g - 16, 500 * (f - g), 200 * (g - h)


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("who", _SEEN_BY)
def test_everybody_tells_members_apart(colours: Palette, who: str) -> None:
    of = [seen(colour, who) for colour in colours.members]
    assert math.dist(of[0], of[1]) > _FIRST_TWO
    assert min(math.dist(one, other) for one, other in combinations(of, 2)) > _ANY_TWO


def test_red_and_green_would_fail() -> None:
    red, green = (seen(colour, "deuteranopia") for colour in ("#dc2626", "#4d7c0f"))
    assert math.dist(red, green) < _FIRST_TWO


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_drawn_stands_out_from_the_page(colours: Palette) -> None:
    assert contrast(colours.ink, colours.background) > _TEXT
    assert contrast(colours.others, colours.background) > _TEXT
    assert all(contrast(colour, colours.background) >= _GRAPHICS for colour in colours.members[:4])
    # Points are outlined in ink on a light page, where the last two are pale.
    assert all(contrast(readable_on(colour), colour) > _TEXT for colour in (*colours.members, colours.others))


def test_a_member_has_a_symbol_as_well() -> None:
    names = [f"m{n}" for n in range(MEMBERS)]
    found = looks([*names, OTHERS], palette(dark=False))
    assert list(found) == [*names, OTHERS]
    assert len({symbol for _, symbol in found.values()}) == MEMBERS + 1
    assert found[OTHERS] == (LIGHT.others, OTHERS_SYMBOL)
    assert (found["m0"], found["m1"]) == ((LIGHT.members[0], SYMBOLS[0]), (LIGHT.members[1], SYMBOLS[1]))
    with pytest.raises(ValueError, match="7 members cannot be distinguished by 6 colours"):
        looks([*names, "m6"], LIGHT)
