"""A bar of who owned a partition, in pictures of a partition and of a group: what is on it, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.picture import time_text
from pipeline.dashboard.web.zone import zoned

_LETTER = 6.5
"""Pixels of a character, and what is around it."""
_SHORT_NAME = 0.04
"""Part of the width from which on a bar has room for a generation's number."""


def bar_words(owned: Mapping[str, Any], scope: Scope, name: str, room: float) -> dict[str, Any]:
    """``name``: what a bar has room for; ``part``: of the width; ``until``: when the owner was one no more.

    Args:
        owned: ``owned_from``, ``owned_until``, ``is_owned_still``, ``generation``.
        scope: the span that the picture shows.
        name: of the owner.
        room: part of the width from which on a bar has room for that.
    """
    width = max((scope.end - scope.start).total_seconds(), 1e-3)
    part = (owned["owned_until"] - owned["owned_from"]).total_seconds() / width
    return {
        "name": name if part >= room else str(owned["generation"]) if part >= _SHORT_NAME else "",
        "part": part,
        "until": "still" if owned["is_owned_still"] else time_text(owned["owned_until"]),
    }


def with_room(texts: alt.Chart) -> alt.Chart:
    """Without the names for which a narrow page has no room; a chart that is part of another does not know its own."""
    return texts.transform_filter(f"!(width > 0) || width * datum.part > {_LETTER} * length(datum.name)")


def bar_tooltips(owner: str) -> list[alt.Tooltip]:
    """What the pointer shows of a bar.

    Args:
        owner: the field with the owner's name.
    """
    return [
        alt.Tooltip(f"{owner}:N", title="owner"),
        alt.Tooltip("generation:Q", title="generation"),
        alt.Tooltip("owned_from_text:N", title=zoned("from")),
        alt.Tooltip("until:N", title=zoned("until")),
        alt.Tooltip("member_id:N", title="member id"),
    ]
