"""The home page: incidents, the worst first; above them how well the wire was seen, below what has nothing."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import streamlit as st

from pipeline.analysis.incidents.notes import as_noted
from pipeline.analysis.rules.rule import all_rules
from pipeline.dashboard.queries.overview.findings import findings
from pipeline.dashboard.queries.overview.health import Health, health
from pipeline.dashboard.queries.overview.incidents import MOST, incident_counts, incidents
from pipeline.dashboard.queries.overview.names import Count, counted, names
from pipeline.dashboard.queries.overview.trends import trends
from pipeline.dashboard.web.format import between, code, moment, of_one_zone, plain
from pipeline.dashboard.web.page_context import PageContext, lake_place, link, part, run
from pipeline.dashboard.web.parts.incident_lines import Places, draw_lines_of, draw_trend
from pipeline.humanize import duration, number, pluralize, size
from pipeline.lake.incident_notes import read_notes

_TRENDS = 10
"""Incidents whose growth is drawn: the first."""
_WORDS = {
    "group": ("group", "groups"), "partition": ("partition", "partitions"), "client": ("client", "clients"),
    "transaction": ("transactional id", "transactional ids"), "namespace": ("MongoDB namespace", "MongoDB namespaces"),
    "server": ("server", "servers"),
}  # fmt: skip


def draw(here: PageContext) -> None:
    """Draw the page: the words that matter first, then what takes longer into the places that were kept for it."""
    summary = st.container()
    seen = st.empty()
    seen.caption("Looking at what was captured …")
    held = [of_one_zone(row) for row in incidents(here.connection, here.scope)]
    found = as_noted(held, read_notes(lake_place()), datetime.now(timezone.utc))
    now = [row for row in found if row["state"] != "resolved" and not row["is_muted"]]
    muted = [row for row in found if row["is_muted"]]
    numbers = _noted(incident_counts(here.connection, here.scope), held, found)
    with summary:
        _summary(here, numbers)
    places = draw_lines_of(now)
    over = [row for row in found if row["state"] == "resolved" and not row["is_muted"]]
    if over:
        st.header("Resolved", anchor=False, help="Within this time range, and no longer ongoing when the capture ends.")
        draw_lines_of(over, " over")
    if len(found) == MOST:
        st.caption(f"The first {MOST} of {number(sum(numbers.values()))} are shown: choose a shorter time range.")
    if muted:
        with st.expander(f"{pluralize(len(muted), 'muted incident')}", icon=":material/notifications_off:"):
            for row in muted:
                link("incident", plain(row["headline"]), "notifications_off", incident=row["incident_id"])
    healthy = st.container()
    with seen:
        part(lambda: _capture(here, seen))
    with healthy:
        part(lambda: _healthy(here))
    part(lambda: _trends(here, now, places))


def _noted(numbers: dict[str, int], held: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, int]:
    """Counts of incidents by severity and of those that are over, less what is muted, as people noted.

    Args:
        numbers: as the lake has them.
        held: the incidents that are shown, as the lake has them.
        found: the same, as people noted.
    """
    kept = dict(numbers)
    for before, after in zip(held, found, strict=True):
        kept["resolved" if before["state"] == "resolved" else before["severity"]] -= 1
        if not after["is_muted"]:
            kept["resolved" if after["state"] == "resolved" else after["severity"]] += 1
    return kept


def _summary(here: PageContext, numbers: dict[str, int]) -> None:
    counts = [
        pluralize(numbers[severity], f"{severity} incident")
        for severity in ("critical", "warning", "info")
        if numbers[severity]
    ]
    if not counts:
        st.success(
            f"Nothing is wrong in what was seen from {between(here.scope.start, here.scope.end)}.",
            icon=":material/check_circle:",
        )
        return
    over = f" {number(numbers['resolved'])} more over." if numbers["resolved"] else ""
    st.markdown(f"**{', '.join(counts)}** at {moment(here.newest)}, the end of what was seen; the worst first.{over}")


def _capture(here: PageContext, place: st.delta_generator.DeltaGenerator) -> None:
    seen = here.once(health)
    place.caption(" · ".join(_capture_in_words(here, seen)))


def _capture_in_words(here: PageContext, seen: Health) -> list[str]:
    """How well the wire was seen, in words."""
    if seen.exchanges is None and seen.frames is None:
        return ["How well the wire was seen is not known: exchanges and frames cannot be read"]
    named = ", ".join(map(code, seen.agents[:3]))
    words = [f"**Captured** by {pluralize(len(seen.agents), 'agent')} ({named})" if seen.agents else "**Captured**"]
    for count, one in ((seen.connections, "connection"), (seen.frames, "frame"), (seen.exchanges, "exchange")):
        if count is not None:
            words.append(pluralize(count, one))
    return [*words, _lost(seen), between(here.scope.start, here.scope.end), _delay(here, seen)]


def _lost(seen: Health) -> str:
    lost = []
    if seen.gaps:
        where = f"in {pluralize(seen.gaps, 'gap')} of {pluralize(seen.hurt_connections, 'connection')}"
        lost.append(f":orange[**{size(seen.bytes_lost)} lost**] {where}")
    if seen.unread_files:
        lost.append(f":orange[**{pluralize(seen.unread_files, 'landing file')} not read**]")
    if seen.gaps is None:
        lost.append("what was lost is not known")
    return ", ".join(lost) or "no packets missing"


def _delay(here: PageContext, seen: Health) -> str:
    if (seconds := seen.behind_seconds(here.newest, datetime.now(timezone.utc))) is not None:
        return f"{duration(seconds)} behind the wire"
    return "not being written now" if seen.written is None else f"not being written now; last {moment(seen.written)}"


def _healthy(here: PageContext) -> None:
    known = here.once(names)
    counts = counted(known, findings(here.connection, here.scope))
    if not counts:
        return
    st.header("Healthy", anchor=False)
    st.markdown(f"{', '.join(map(_good, counts))}.")
    looked = len([rule for rule in all_rules() if here.scope.has(rule.protocol) or rule.protocol == "capture"])
    st.caption(f"Looked at by {pluralize(looked, 'rule')}: none of them found anything that is still ongoing.")
    link("findings", "All findings", "warning")


def _good(count: Count) -> str:
    one, more = _WORDS[count.kind]
    good = count.seen - count.troubled
    if not count.troubled:
        return f"**{pluralize(good, one, more)}**" if good == 1 else f"**all {pluralize(good, one, more)}**"
    return f"**{number(good)}** of {pluralize(count.seen, one, more)}"


def _trends(here: PageContext, rows: list[dict[str, object]], places: dict[str, Places]) -> None:
    for incident_id, trend in trends(here.connection, rows[:_TRENDS]):
        draw_trend(places[incident_id], trend)


run(draw)
