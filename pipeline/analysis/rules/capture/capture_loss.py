"""Rule ``capture_loss``: the capture lost bytes, so that some of what the tables hold cannot be trusted."""

from __future__ import annotations

from decoder.model import SPEAKS
from pipeline.analysis.claims.capture import CAPTURE_LOSS
from pipeline.analysis.rules.capture.texts import BOTH_WAYS, FILE, INTERFACE, MORE_ROOM, NOT_READ, STRANGERS, WHOLE
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.texts import LATER, SEEN, Texts, nobody, own_clients
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_AGENT, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import ADDRESS, IS_LOSS, Row
from pipeline.humanize import clock, listed, pluralize

_DISTRUST = (
    "Of the connections named here do not trust counts, unanswered requests, and offsets in the time of the loss."
)
ADVICE = f"Now: look at `bronze.gaps`. {_DISTRUST} Fix: {WHOLE}. If they were whole, {MORE_ROOM}."
DROPPED = f"Now: do not trust counts, unanswered requests, and offsets in the time of the loss. Fix: {MORE_ROOM}."
FILE_LOST = (
    "Now: read the capture again if it is still there. Fix: look in `ops.landing_files` at what was wrong with it."
)
ONE_WAY = f"Now: conclude nothing about these connections, also not that requests went unanswered. Fix: {BOTH_WAYS}."


def _whole(case: Case) -> str:
    """What the kernel dropped was not read; what is missing from a connection may have been cut off as well."""
    names = [str(name) for one in case.bundle.findings for name in one.details.get("connections", ())]
    if _captured(case):
        return f"{BOTH_WAYS[:1].upper()}{BOTH_WAYS[1:]}."
    if names and all(name.startswith(FILE) for name in names):
        return "Look in `ops.landing_files` at what was wrong with the file, and read the capture again."
    more_room = f"{MORE_ROOM[:1].upper()}{MORE_ROOM[1:]}"
    if names and all(name.startswith(NOT_READ) for name in names):
        return f"{more_room}."
    return f"{WHOLE[:1].upper()}{WHOLE[1:]}. If they were whole, {MORE_ROOM}."


def _captured(case: Case) -> set[str]:
    """Which directions alone were captured, if that is what all findings say."""
    found = {str(one.details.get("captured") or "") for one in case.bundle.findings}
    return set() if "" in found else found


def _lost_now(case: Case) -> str:
    if _captured(case):
        return "Conclude nothing about these connections, also not that requests went unanswered."
    return "Do not conclude from what is missing: counts, unanswered requests and offsets of that time."


def _one_way_headline(case: Case) -> str:
    details = [one.details for one in case.bundle.findings]
    servers = sorted({str(some.get("server")) for some in details if some.get("captured") == "requests"})
    answering = sorted({str(some["answering"]) for some in details if some.get("answering")})
    if answering:
        return f"{listed(answering)} answers what {listed(servers)} is asked: the capture is beside a translation"
    (captured, *others) = sorted(_captured(case))
    servers = sorted({str(some.get("server")) for some in details})
    only = f"only {captured}" if not others else "only one direction"
    return f"The capture holds {only} of the connections to {listed(servers)}: nothing on them was judged"


def _lost(case: Case) -> str:
    if _captured(case):
        return _one_way_headline(case)
    lost = sum(int(one.details.get("bytes_lost") or 0) for one in case.bundle.findings)
    agents = sorted({str(one.row["subject"]).partition("/")[0] for one in case.bundle.findings})
    names = sorted({entity[-1] for entity in case.bundle.named.get("client", ())})
    of = f" of {listed(names)}" if names else ""
    but = "what is said of them is incomplete" if names else "what was not seen may have happened"
    return f"The capture ({listed(agents)}) lost {pluralize(lost, 'byte')}{of}: {but}"


class CaptureLoss(Rule):
    """The capture lost bytes, so that some of what the tables say is incomplete."""

    name = "capture_loss"
    title = "Capture lost bytes"
    protocol = "capture"
    about = "the capture itself"
    severities = ("warning",)
    reads = ("gaps", "exchanges", "waiting")
    advice = (ADVICE, DROPPED, FILE_LOST, ONE_WAY)
    urgency = LATER
    shown_by = ShownBy(what="losses")
    texts = Texts(
        headline=_lost,
        now=_lost_now,
        fix=_whole,
        reasoning=f"{SEEN}sequence numbers of TCP show the holes, `bronze.gaps` lists them.",
        source=nobody,
        affected=own_clients,
    )
    gathered = OF_AGENT
    is_of_capture = True
    claims = CAPTURE_LOSS

    @classmethod
    def sql(cls, case: Case) -> str | None:
        """Its rows of gaps."""
        del case
        return "FROM bronze.gaps ORDER BY ts"

    @classmethod
    def detect(cls, sources: Sources, settings: RuleThresholds) -> list[Finding]:
        """Apply the rule: one finding for each agent and server; exchanges show to which server a connection went.

        Connections with only one captured direction are findings of their own: TCP acknowledges bytes of the
        other direction, of which no frame was seen.
        """
        if not sources.tables.any(f"FROM gaps WHERE {IS_LOSS} OR {_OF_NO_CONNECTION}"):
            return []
        rows = sources.tables.rows(_LOSSES)
        elsewhere = sources.tables.rows(_ELSEWHERE)
        of_connections = [_finding(row, sources, settings) for row in rows]
        return of_connections + [_of_no_connection(row, sources) for row in elsewhere]


NOTHING_READ = "connections without exchanges"
"""Ends the subject of losses of connections without a known exchange."""

_OF_NO_CONNECTION = f"regexp_matches(connection_id, '^({FILE}|{INTERFACE}|{STRANGERS})')"
_LOSSES = f"""
    WITH losses AS (
        SELECT connection_id, agent_id, count(*) AS gaps, sum(bytes_lost)::BIGINT AS bytes_lost,
            min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us,
            bool_or(direction = 'request') AS lost_requests, bool_or(direction = 'response') AS lost_responses
        FROM gaps WHERE {IS_LOSS} GROUP BY ALL
    ), halves AS (
        SELECT connection_id, {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, exchange_id,
            status = 'paired' AS is_paired, request_ts IS NOT NULL AS is_asked,
            response_ts IS NOT NULL AS is_answered
        FROM exchanges WHERE connection_id IN (SELECT connection_id FROM losses)
        UNION ALL
        SELECT connection_id, {ADDRESS["server"]}, {ADDRESS["client"]}, client_id, exchange_id, false, true, false
        FROM waiting WHERE request_ts IS NOT NULL AND connection_id IN (SELECT connection_id FROM losses)
    ), touched AS (
        SELECT connection_id, server, any_value(client) AS client,
            list(DISTINCT client_id) FILTER (client_id IS NOT NULL) AS client_ids,
            coalesce(min(exchange_id) FILTER (NOT is_paired), min(exchange_id)) AS evidence,
            bool_or(is_asked) AS is_asked, bool_or(is_answered) AS is_answered
        FROM halves GROUP BY ALL
    ), connections AS (
        SELECT *, CASE WHEN server IS NULL THEN '' WHEN lost_responses AND NOT is_answered THEN 'requests'
            WHEN lost_requests AND NOT is_asked THEN 'responses' ELSE '' END AS captured
        FROM losses LEFT JOIN touched USING (connection_id)
        WHERE server IS NOT NULL OR NOT {_OF_NO_CONNECTION}
            AND connection_id NOT IN (SELECT connection_id FROM all_copies)
            AND connection_id NOT IN (SELECT connection_id FROM gaps WHERE starts_with(method, '{SPEAKS}'))
    ), translated AS (
        SELECT connection_id, min(answering) AS answering FROM connections JOIN (
            SELECT client, min(server) AS answering FROM connections WHERE captured = 'responses' GROUP BY client
        ) USING (client) WHERE captured = 'requests' GROUP BY connection_id
    )
    SELECT agent_id, server, captured, sum(gaps)::BIGINT AS gaps, sum(bytes_lost)::BIGINT AS bytes_lost,
        min(first_us) AS first_us, max(last_us) AS last_us, min(answering) AS answering,
        list(connection_id ORDER BY connection_id) AS connections,
        list_sort(list_distinct(flatten(list(coalesce(client_ids, []))))) AS client_ids,
        list(evidence ORDER BY evidence) FILTER (evidence IS NOT NULL) AS evidence
    FROM connections LEFT JOIN translated USING (connection_id)
    GROUP BY agent_id, server, captured ORDER BY agent_id, server, captured
"""
_ELSEWHERE = f"""
    SELECT agent_id, connection_id, count(*) AS gaps, sum(bytes_lost)::BIGINT AS bytes_lost, max(seq) AS packets,
        min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us
    FROM gaps WHERE {_OF_NO_CONNECTION}
    GROUP BY agent_id, connection_id ORDER BY agent_id, connection_id
"""


def _of_no_connection(row: Row, sources: Sources) -> Finding:
    advice = DROPPED
    if row.connection_id.startswith(FILE):
        advice = FILE_LOST
        name = row.connection_id.removeprefix(FILE)
        summary = (
            f"The landing file {name} of the capture agent {row.agent_id} was lost before it was read, with "
            f"{pluralize(row.bytes_lost, 'byte')} of messages."
        )
    elif row.connection_id.startswith(STRANGERS):
        summary = (
            f"The capture agent {row.agent_id} did not look at {pluralize(row.bytes_lost, 'byte')} of connections "
            f"without any answer, from {clock(row.first_us)} to {clock(row.last_us)} UTC: too many of "
            "them cost too much to read, as in a flood or a scan. What was answered before was read."
        )
    else:
        name = row.connection_id.removeprefix(INTERFACE).split(":")[0]
        summary = (
            f"The kernel dropped {pluralize(row.packets, 'packet')} of the interface {name} before the capture agent "
            f"{row.agent_id} could read them, noticed from {clock(row.first_us)} to {clock(row.last_us)} UTC; "
            "their connections are unknown."
        )
    return Finding(
        rule=CaptureLoss.name, severity="warning", subject=f"{row.agent_id}/{row.connection_id}",
        state=sources.state("", row.first_us, row.last_us, row.gaps), cluster="", topic=None, partition=None,
        group_id=None, first_us=row.first_us, last_us=row.last_us, summary=summary, advice=advice, evidence=[],
        details={
            "gaps": row.gaps, "bytes_lost": row.bytes_lost, "connections": [row.connection_id], "client_ids": [],
            "enough_us": row.first_us,
        },
    )  # fmt: skip


def _finding(row: Row, sources: Sources, settings: RuleThresholds) -> Finding:
    if row.server is None:
        return _of_unknown_server(row, sources, settings)
    cluster = sources.catalog.cluster_at(row.server, row.last_us)
    is_one_way = bool(row.captured)
    summary = (
        _one_way(row)
        if is_one_way
        else (
            f"The capture agent {row.agent_id} lost {pluralize(row.bytes_lost, 'byte')} in "
            f"{pluralize(row.gaps, 'place')} of "
            f"{pluralize(len(row.connections), 'connection')} to {row.server}, from {clock(row.first_us)} to "
            f"{clock(row.last_us)} UTC; they belong to {', '.join(row.client_ids[:5]) or 'clients without client_id'}. "
            "What the tables say of them is incomplete."
        )
    )
    subject = f"{row.agent_id}/{row.server}" + (f"/{row.captured}" if is_one_way else "")
    return Finding(
        rule=CaptureLoss.name, severity="warning", subject=subject,
        state=sources.state(cluster, row.first_us, row.last_us, row.gaps), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=row.first_us, last_us=row.last_us, summary=summary,
        advice=ONE_WAY if is_one_way else ADVICE,
        evidence=row.evidence[: settings.max_evidence],
        details={
            "gaps": row.gaps, "bytes_lost": row.bytes_lost, "connections": row.connections[: settings.max_evidence],
            "client_ids": row.client_ids, "enough_us": row.first_us,
            **({"captured": row.captured, "server": row.server, "answering": row.answering} if is_one_way else {}),
        },
    )  # fmt: skip


def _of_unknown_server(row: Row, sources: Sources, settings: RuleThresholds) -> Finding:
    """Of connections without any exchange, so that not even their server is known."""
    connections = row.connections
    return Finding(
        rule=CaptureLoss.name, severity="warning", subject=f"{row.agent_id}/{NOTHING_READ}",
        state=sources.state("", row.first_us, row.last_us, row.gaps), cluster="", topic=None, partition=None,
        group_id=None, first_us=row.first_us, last_us=row.last_us,
        summary=(
            f"The capture agent {row.agent_id} lost {pluralize(row.bytes_lost, 'byte')} in "
            f"{pluralize(row.gaps, 'place')} of "
            f"{pluralize(len(connections), 'connection')} without any exchange in the capture, from "
            f"{clock(row.first_us)} "
            f"to {clock(row.last_us)} UTC. Their client and server are not known, and nothing of them was judged."
        ),
        advice=ADVICE, evidence=[],
        details={
            "gaps": row.gaps, "bytes_lost": row.bytes_lost, "connections": connections[: settings.max_evidence],
            "client_ids": [], "enough_us": row.first_us,
        },
    )  # fmt: skip


def _one_way(row: Row) -> str:
    missing = "responses" if row.captured == "requests" else "requests"
    translated = (
        f" {row.answering} answers what {row.server} is asked: an address is translated between the two."
        if row.answering
        else ""
    )
    return (
        f"The capture agent {row.agent_id} holds only the {row.captured} of "
        f"{pluralize(len(row.connections), 'connection')} to {row.server}, and none of their {missing}.{translated} "
        "Nothing on these connections was judged."
    )
