"""An axis of time from which long silences are cut out: each is a narrow gap that says how long it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import altair as alt

from pipeline.dashboard.queries.active import Active, seconds_shown
from pipeline.dashboard.queries.scope import Scope
from pipeline.dashboard.web.pictures.colours import Palette
from pipeline.dashboard.web.pictures.picture import data, time_axis
from pipeline.dashboard.web.zone import in_zone, zone_name
from pipeline.humanize import duration

_GAP = 0.035
"""A silence is so wide, as a part of the time that is shown."""
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)
_TICKS = 9
_APART = 0.07
"""Ticks are so far from each other, as a part of the axis."""


class CutTime:
    """Where times are on the axis: seconds of what is shown; a span without silences has the usual axis."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._runs = scope.runs if isinstance(scope, Active) else ()
        self._gap = seconds_shown(scope) * _GAP
        self._begins: list[float] = []
        at = 0.0
        for run in self._runs:
            self._begins.append(at)
            at += (run.end - run.start).total_seconds() + self._gap
        self._whole = at - self._gap

    def rows(self, rows: Iterable[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
        """Rows with ``NAME_at`` beside each of these times; those that are in a silence are left out."""
        if not self._runs:
            return list(rows)
        found = []
        for row in rows:
            places = {f"{name}_at": self._at(row[name]) for name in names}
            if None not in places.values():
                found.append({**row, **places})
        return found

    def x(self, name: str = "ts", *, axis: bool = True) -> alt.X:
        """The horizontal axis of a time."""
        if not self._runs:
            return time_axis(self._scope, name, axis=axis)
        return alt.X(
            f"{name}_at:Q", title=zone_name() if axis else None,
            scale=alt.Scale(domain=[0, self._whole], nice=False, zero=False), axis=self._axis() if axis else None,
        )  # fmt: skip

    def x2(self, name: str) -> alt.X2:
        """The other end of a bar."""
        return alt.X2(f"{name}_at:Q" if self._runs else f"{name}:T")

    def silences(self, colours: Palette) -> list[alt.Chart]:
        """The silences: a band over the whole height, with how long each was."""
        rows = []
        for before, after, begin in zip(self._runs, self._runs[1:], self._begins[1:], strict=False):
            silence = duration((after.start - before.end).total_seconds())
            ends = {"from": begin - self._gap, "to": begin, "middle": begin - self._gap / 2}
            rows.append({**ends, "words": f"{silence} of silence"})
        if not rows:
            return []
        scale = alt.Scale(domain=[0, self._whole], nice=False, zero=False)
        base = alt.Chart(data(rows)).encode(tooltip=[alt.Tooltip("words:N", title="cut out")])
        band = base.mark_rect(color=colours.faint, opacity=0.18).encode(x=alt.X("from:Q", scale=scale), x2="to:Q")
        words = base.mark_text(angle=270, align="left", dx=6, fontSize=11, color=colours.ink).encode(
            x=alt.X("middle:Q", scale=scale), y=alt.value("height"), text="words:N"
        )
        return [band, words]

    def _at(self, ts: datetime) -> float | None:
        for run, begin in zip(self._runs, self._begins, strict=True):
            if run.start <= ts <= run.end:
                return begin + (ts - run.start).total_seconds()
        return None

    def _axis(self) -> alt.Axis:
        ticks = self._ticks()
        known = json.dumps({f"{place:.3f}": text for place, text in ticks})
        return alt.Axis(
            values=[place for place, _ in ticks], labelExpr=f"({known})[format(datum.value, '.3f')] || ''",
            labelOverlap=True, labelBound=True, grid=False, titleAnchor="end", titleAlign="right", titleFontSize=11,
            titleFontWeight="normal", titlePadding=0,
        )  # fmt: skip

    def _ticks(self) -> list[tuple[float, str]]:
        """Places and texts: multiples of one step, at least one for each part; with the date where that differs."""
        step = next((one for one in _STEPS if self._whole / one <= _TICKS), _STEPS[-1])
        found: list[tuple[float, str]] = []
        day = None
        for run, begin in zip(self._runs, self._begins, strict=True):
            times = self._multiples(run, step) or [run.start]
            for ts in times:
                place = begin + (ts - run.start).total_seconds()
                if found and place - found[-1][0] < self._whole * _APART:
                    continue
                local = in_zone(ts)
                text = f"{local:%H:%M}" if step >= 60 else f"{local:%H:%M:%S}"
                found.append((place, f"{local:%b %d} {text}" if day is not None and local.date() != day else text))
                day = local.date()
        return found

    @staticmethod
    def _multiples(run: Scope, step: float) -> list[datetime]:
        first = -(-run.start.timestamp() // step) * step
        count = int((run.end.timestamp() - first) // step) + 1
        return [run.start + timedelta(seconds=first + n * step - run.start.timestamp()) for n in range(count)]
