"""The script that Streamlit runs: which pages there are, and what they share. ``wirelake dashboard`` starts it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pipeline.dashboard.web.parts.table import prepare_tables, run_tables
from pipeline.dashboard.web.toolbar import INCIDENT, choose_zone, follow_search, sidebar, top

st.set_page_config(page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
page = st.navigation(
    [
        st.Page("page/home.py", title="Incidents", icon=":material/emergency_home:", default=True),
        st.Page("page/incident.py", title="Incident", icon=":material/troubleshoot:", visibility="hidden"),
        st.Page("page/search.py", title="Search", icon=":material/search:", visibility="hidden"),
        st.Page("page/findings.py", title="Findings", icon=":material/warning:"),
        st.Page("page/groups.py", title="All groups", icon=":material/format_list_numbered:"),
        st.Page("page/partitions.py", title="Groups & partitions", icon=":material/stacked_line_chart:"),
        st.Page("page/group.py", title="Group", icon=":material/groups:"),
        st.Page("page/transactions.py", title="Transactions", icon=":material/lock_clock:"),
        st.Page("page/clients.py", title="Clients", icon=":material/devices:"),
        st.Page("page/connections.py", title="Connections", icon=":material/cable:"),
        st.Page("page/mongodb.py", title="MongoDB", icon=":material/database:"),
        st.Page("page/latency.py", title="Latency & errors", icon=":material/speed:"),
        st.Page("page/traffic/exchanges.py", title="Exchanges", icon=":material/swap_horiz:"),
        st.Page("page/traffic/sequence.py", title="Sequence", icon=":material/swap_vert:", visibility="hidden"),
        st.Page("page/traffic/compare.py", title="Compare", icon=":material/compare:", visibility="hidden"),
        st.Page("page/quality.py", title="Quality", icon=":material/fact_check:"),
        st.Page("page/query.py", title="SQL", icon=":material/terminal:"),
    ],
    expanded=True,
)
st.set_page_config(page_title=f"{page.title} · Wirelake")
choose_zone()
top(page.title, is_heading=page.url_path != INCIDENT)
sidebar()
follow_search()
prepare_tables()
page.run()
run_tables()
