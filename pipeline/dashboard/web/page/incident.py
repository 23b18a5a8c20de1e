"""The page of one incident: what to do, the picture that shows it, what follows from what, and its evidence."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from pipeline.dashboard.queries.overview.incidents import IncidentFinding, findings_of, incident, incidents
from pipeline.dashboard.queries.overview.losses import Losses
from pipeline.dashboard.queries.overview.proof import ConnectionSeen, parts_of_group, proof
from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.progress.shares import SharesSeen
from pipeline.dashboard.web.format import code, of_one_zone, plain, seen
from pipeline.dashboard.web.page_context import PageContext, draw_text, fixed, go, link, part, run
from pipeline.dashboard.web.parts.drawn import draw_chart, is_dark
from pipeline.dashboard.web.parts.exchange_addresses import sequence_address
from pipeline.dashboard.web.parts.group_drawn import draw_group, draw_shares
from pipeline.dashboard.web.parts.incidents import draw_head, draw_words
from pipeline.dashboard.web.parts.offsets_drawn import draw_offsets, link_commits
from pipeline.dashboard.web.parts.story import draw_story
from pipeline.dashboard.web.parts.ticket import ticket
from pipeline.dashboard.web.pictures.causes_picture import OPEN, causes_picture, in_words, nodes
from pipeline.dashboard.web.pictures.losses_picture import in_words as losses_in_words
from pipeline.dashboard.web.pictures.losses_picture import losses_picture
from pipeline.dashboard.web.pictures.sequence_picture import in_words as sequence_in_words
from pipeline.dashboard.web.pictures.sequence_picture import sequence_picture
from pipeline.humanize import pluralize


def draw(here: PageContext) -> None:
    """Draw the page: the incident of the address, or the worst."""
    asked = st.query_params.get("incident")
    if asked is None:
        worst = incidents(here.connection, here.scope)
        if not worst:
            st.success("No incident in this time range.", icon=":material/check_circle:")
            return
        asked = worst[0]["incident_id"]
    row = incident(here.connection, asked)
    if row is None:
        st.info("There is no such incident in this lake, or not any more.")
        return
    row = of_one_zone(row)
    findings = [replace(one, finding=of_one_zone(one.finding)) for one in findings_of(here.connection, row)]
    draw_head(row)
    draw_words(row)
    part(lambda: draw_story(row))
    st.caption(f"Seen {seen(row['first_ts'], row['last_ts'])}. Cluster {code(row['cluster'])}")
    part(lambda: _picture(here, row, findings))
    st.header("What follows from what", anchor=False)
    part(lambda: _graph(row, findings))
    for one in findings:
        part(partial(_finding, one))
    with st.expander("Copy for a ticket", icon=":material/content_copy:"):
        st.code(ticket(row, findings, _address(row)), language=None, wrap_lines=True)


def _address(row: dict[str, Any]) -> str:
    """Of this page, for somebody else; nothing if the browser did not state it."""
    return f"{st.context.url}?{urlencode({'incident': row['incident_id']})}" if st.context.url else ""


def _picture(here: PageContext, row: dict[str, Any], findings: list[IncidentFinding]) -> None:
    evidence = [exchange_id for one in findings for exchange_id in one.finding["evidence"]]
    shown = proof(here.connection, row, evidence)
    match shown:
        case Offsets():
            draw_offsets(shown, can_zoom=False)
            link(
                "partitions", "Look closer", "zoom_in", group=row["group_id"], topic=shown.place.topic,
                partition=shown.place.partition, cluster=shown.place.cluster, **fixed(shown.scope),
            )  # fmt: skip
            link_commits(shown)
        case GroupSeen():
            draw_group(shown, only=parts_of_group(row["rule"]))
            link(
                "group", "Look closer", "zoom_in", group=shown.group.group_id, cluster=shown.group.cluster,
                **fixed(shown.scope),
            )  # fmt: skip
        case SharesSeen():
            draw_shares(shown, key=f"shares {row['incident_id']}")
            link(
                "group", "Look closer", "zoom_in", group=shown.place.group, cluster=shown.place.cluster,
                share=f"{shown.place.topic}-{shown.place.partition}", **fixed(shown.scope),
            )  # fmt: skip
        case Losses():
            words = losses_in_words(shown)
            st.caption(f"{plain(words)} Do not conclude anything from silence at these times.")
            draw_chart(losses_picture(shown, dark=is_dark()), key=f"losses {row['incident_id']}", alt=words)
        case ConnectionSeen():
            for one in shown.all:
                _connection(one, row)


def _connection(shown: ConnectionSeen, row: dict[str, Any]) -> None:
    words = sequence_in_words(shown.steps, shown.part.ends)
    st.caption(f"{plain(words)} Time runs down, not to scale.")
    chart = sequence_picture(shown.steps, shown.part.ends, shown.evidence, dark=is_dark())
    draw_chart(chart, key=f"sequence {row['incident_id']} {shown.exchange_id}", alt=words)
    link("sequence", "Look closer", "zoom_in", **sequence_address(shown.exchange_id, row["first_ts"]))


def _graph(row: dict[str, Any], findings: list[IncidentFinding]) -> None:
    graph = nodes(findings)
    if len(graph) < 2:
        return
    key = f"causes {row['incident_id']}"
    chart = causes_picture(graph, dark=is_dark())
    event = draw_chart(chart, key=key, on_select="rerun", selection_mode=OPEN, alt=in_words(graph))
    if clicked := event["selection"].get(OPEN):
        go("exchanges", finding=clicked[0]["finding"])


def _finding(one: IncidentFinding) -> None:
    """A finding, further right the further it is from the cause, with the way to its evidence."""
    box = st.container() if not one.depth else st.columns([one.depth, 24 - one.depth])[1]
    with box.container(border=True):
        because = f" because {plain(one.because)}" if one.because else ""
        arrow = "↳ " if one.depth else ""
        st.markdown(f"{arrow}**{one.finding['rule']}** {code(one.finding['subject'])}{because}")
        draw_text(one.finding["summary"])
        if one.finding["evidence"]:
            link(
                "exchanges", f"Evidence: {pluralize(len(one.finding['evidence']), 'exchange')}", "swap_horiz",
                finding=one.finding["finding_id"],
            )  # fmt: skip
            address = sequence_address(one.finding["evidence"][0], one.finding["first_ts"])
            link("sequence", "Its connection as a sequence", "swap_vert", **address)


run(draw)
