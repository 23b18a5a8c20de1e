"""The page of one incident: what to do, what happened, the pictures that show it, and its evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any
from urllib.parse import urlencode

import altair as alt
import streamlit as st

from pipeline.analysis.incidents.notes import NOTHING, NoteState, note_states, with_notes
from pipeline.dashboard.queries.overview.incidents import IncidentFinding, findings_of, incident, incidents, previous
from pipeline.dashboard.queries.overview.losses import Losses
from pipeline.dashboard.queries.overview.proof import ConnectionSeen, Proof, parts_of_group, proof
from pipeline.dashboard.queries.overview.turning_points import turning_points
from pipeline.dashboard.queries.progress.groups import GroupSeen
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.progress.shares import SharesSeen
from pipeline.dashboard.queries.traffic.conversation import Conversation
from pipeline.dashboard.web.format import code, moment, of_one_zone, plain, prose, seen
from pipeline.dashboard.web.page_context import PageContext, draw_text, fixed, go, lake_place, link, part, run
from pipeline.dashboard.web.parts.copy_incident import Copies, draw_copy
from pipeline.dashboard.web.parts.draw_chart import draw_chart, is_dark
from pipeline.dashboard.web.parts.exchange_addresses import sequence_address
from pipeline.dashboard.web.parts.finding_list import draw_findings
from pipeline.dashboard.web.parts.group_drawn import draw_group, draw_shares
from pipeline.dashboard.web.parts.incident_notes import draw_noted, draw_noting
from pipeline.dashboard.web.parts.incidents import draw_now, draw_state
from pipeline.dashboard.web.parts.offsets_drawn import draw_offsets, link_commits
from pipeline.dashboard.web.parts.rule_thresholds import draw_thresholds
from pipeline.dashboard.web.parts.story import draw_story
from pipeline.dashboard.web.pictures import conversation_picture
from pipeline.dashboard.web.pictures.causes_picture import OPEN, causes_picture, has_branches, in_words, nodes
from pipeline.dashboard.web.pictures.losses_picture import in_words as losses_in_words
from pipeline.dashboard.web.pictures.losses_picture import losses_picture
from pipeline.dashboard.web.pictures.picture import below_each_other
from pipeline.dashboard.web.pictures.proof_picture import proof_picture
from pipeline.dashboard.web.pictures.sequence_picture import in_words as sequence_in_words
from pipeline.dashboard.web.pictures.sequence_picture import sequence_picture
from pipeline.humanize import pluralize
from pipeline.lake.incident_notes import read_notes
from pipeline.terminal.console import printable

_HEADLINE = "headline"
"""Key of its container, which the style names."""
_STYLE = f".st-key-{_HEADLINE} h1 {{ font-size: 1.6rem; padding-block: 0.5rem 0; text-wrap: balance; }}"
_TITLE = "Incident"
"""The heading where no incident is shown."""
_Shown = tuple[dict[str, Any], list[IncidentFinding]]
_FILE_WIDTH = 900
"""Pixels of the plot of a picture that is taken away."""


def draw(here: PageContext) -> None:
    """Draw the page: the incident of the address, or the worst. Its headline is the heading."""
    heading, known = st.container(), list[_Shown]()
    part(lambda: known.extend(_asked(here)))
    if not known:
        heading.title(_TITLE, anchor=False)
        return
    row, findings = known[0]
    note_state = note_states(read_notes(lake_place()), datetime.now(timezone.utc)).get(row["incident_id"], NOTHING)
    row = with_notes(row, note_state)
    copies = _head(row, findings, note_state)
    draw_noted(note_state)
    draw_text(row["impact"])
    draw_now(row)
    part(lambda: draw_story(row))
    st.markdown(f"**Fix.** {prose(row['remediation'])}")
    st.caption(
        f"**{row['confidence'].capitalize()}.** {prose(row['reasoning'])} "
        f"Seen {seen(row['first_ts'], row['last_ts'])}. Cluster {code(row['cluster'])}"
    )
    part(lambda: _previous(here, row))
    part(lambda: _pictures(here, row, findings, copies))
    part(lambda: _graph(row, findings))
    st.header("Evidence", anchor=False)
    draw_findings(here, findings)
    part(lambda: draw_thresholds(row["rules"], row["incident_id"]))


def _asked(here: PageContext) -> list[_Shown]:
    """The incident with its findings; none where there is none, which the page states."""
    asked = st.query_params.get("incident")
    if asked is None:
        worst = incidents(here.connection, here.scope)
        if not worst:
            st.success("No incident in this time range.", icon=":material/check_circle:")
            return []
        asked = worst[0]["incident_id"]
    row = incident(here.connection, asked)
    if row is None:
        st.info("There is no such incident in this lake, or not any more.")
        return []
    findings = [replace(one, finding=of_one_zone(one.finding)) for one in findings_of(here.connection, row)]
    return [(of_one_zone(row), findings)]


def _head(row: dict[str, Any], findings: list[IncidentFinding], note_state: NoteState) -> Copies:
    """The headline, also as the browser's title; beside what is known of its state what is copied."""
    st.set_page_config(page_title=f"{printable(row['headline'])} · Wirelake")
    st.html(f"<style>{_STYLE}</style>")
    with st.container(key=_HEADLINE):
        st.title(plain(row["headline"]), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            draw_state(row)
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            draw_noting(row["incident_id"], note_state, is_over=row["state"] == "resolved")
            return draw_copy(row, findings, _address(row))


def _address(row: dict[str, Any]) -> str:
    """Of this page, for somebody else; nothing if the browser did not state it."""
    return f"{st.context.url}?{urlencode({'incident': row['incident_id']})}" if st.context.url else ""


def _previous(here: PageContext, row: dict[str, Any]) -> None:
    """The ways to incidents of the same kind that came before."""
    before = previous(here.connection, row)
    if not before:
        return
    with st.expander(f"{pluralize(len(before), 'previous occurrence')}, the last until {moment(before[0]['last_ts'])}"):
        for one in before:
            times = f"{moment(one['first_ts'])}, {seen(one['first_ts'], one['last_ts']).rpartition(', ')[2]}"
            link("incident", f"{times}: {plain(one['headline'])}", "history", incident=one["incident_id"])


def _pictures(here: PageContext, row: dict[str, Any], findings: list[IncidentFinding], copies: Copies) -> None:
    evidence = [exchange_id for one in findings for exchange_id in one.finding["evidence"]]
    shown = proof(here.connection, row, evidence)
    part(lambda: _proof(row, shown))
    if shown is not None:
        dark = is_dark()
        copies.add("What shows it", lambda: proof_picture(shown, dark=dark, width=_FILE_WIDTH), row["incident_id"])
    part(lambda: _conversation(here, row, findings, copies, is_shown=isinstance(shown, ConnectionSeen)))


def _conversation(
    here: PageContext, row: dict[str, Any], findings: list[IncidentFinding], copies: Copies, *, is_shown: bool
) -> None:
    """Who sent what to whom; not where one connection, which is shown already, is all of it."""
    shown = turning_points(here.connection, row, findings)
    if not shown.messages or (is_shown and len(shown.parties) < 3):
        return
    st.header("Who sent what", anchor=False)
    words = conversation_picture.in_words(shown)
    st.caption(
        f"{plain(words)} Time runs down, not to scale; shaded: the lines above. Click a message to open its exchange."
    )
    dark = is_dark()
    chart = conversation_picture.parties_picture(shown, dark=dark)
    event = draw_chart(
        chart,
        key=f"parties {row['incident_id']}",
        on_select="rerun",
        selection_mode=conversation_picture.OPEN,
        alt=words,
    )
    if (clicked := event["selection"].get(conversation_picture.OPEN)) and clicked[0]["exchange_id"]:
        go("exchanges", exchange=clicked[0]["exchange_id"])
    copies.add("Who sent what", partial(_file_of, shown, dark=dark), f"{row['incident_id']}-messages")


def _file_of(shown: Conversation, *, dark: bool) -> alt.VConcatChart:
    chart = conversation_picture.parties_picture(shown, dark=dark, can_open=False)
    chart.config = alt.Undefined
    return below_each_other([chart], dark=dark, width=_FILE_WIDTH)


def _proof(row: dict[str, Any], shown: Proof | None) -> None:
    match shown:
        case Offsets():
            draw_offsets(shown, can_zoom=False)
            with st.container(horizontal=True):
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
    """What follows from what, where causes branch; where they do not, the order of the evidence shows it."""
    graph = nodes(findings)
    if not has_branches(graph):
        return
    st.header("What follows from what", anchor=False)
    chart = causes_picture(graph, dark=is_dark())
    key = f"causes {row['incident_id']}"
    event = draw_chart(chart, key=key, on_select="rerun", selection_mode=OPEN, alt=in_words(graph))
    if clicked := event["selection"].get(OPEN):
        go("exchanges", finding=clicked[0]["finding"])


run(draw, heading=_TITLE)
