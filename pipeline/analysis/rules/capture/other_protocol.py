"""Rule ``other_protocol``: a server answers clients of Kafka or MongoDB in another protocol, or never at all.

Evidence: rows of ``gaps`` with the method :data:`SPEAKS` and the name of the protocol; and requests on connections that
the server closed before it sent a byte, where it answered nothing in the whole time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from decoder.model import SPEAKS, FrameFlags
from decoder.protocols import protocols
from pipeline.analysis.claims.capture import OTHER_PROTOCOL
from pipeline.analysis.rules.capture.connections.handshakes import speak_tls
from pipeline.analysis.rules.capture.connections.shapes import seen
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, not_why, own_clients, server
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_SERVER, Rule
from pipeline.analysis.rules.thresholds import UNANSWERED_TIMES, Count, RuleThresholds
from pipeline.analysis.tables import ADDRESS, IS_CONNECTION, Row
from pipeline.humanize import clock, first_of, pluralize
from pipeline.other_protocols import TLS, remedy

ADVICE = (
    "Now: look at what listens on {server}: {remedy}. Fix: compare host, port and security settings of the client "
    "(Kafka: bootstrap.servers, security.protocol; MongoDB: the connection string, tls) with that listener."
)
CLOSED_ADVICE = (
    "Now: find out what listens on {server}: `openssl s_client -connect {server}` shows a TLS listener, which the "
    "client must use with TLS (Kafka: security.protocol=SSL or SASL_SSL; MongoDB: tls=true). Without one, look in the "
    "server's log why it closes connections, and at a load balancer in front of it: one without a healthy server "
    "behind it closes connections like this. Fix: compare host, port and security settings of the client with that "
    "listener."
)


def _misunderstood(case: Case) -> str:
    details = case.details
    asked = f"the {details.get('asks')} requests of {case.who}"
    connections = pluralize(int(details.get("connections_seen") or 0), "connection")
    if details.get("answers"):
        return f"{server(case)} answers {details['answers']} to {asked} ({connections})"
    others = ", and continues TLS handshakes of others" if details.get("is_tls") else ""
    return f"{server(case)} closes each connection before it answers anything to {asked} ({connections}){others}"


class OtherProtocol(Rule):
    """A server answers in another protocol than it is asked in, or closes each connection before it answers."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unanswered_times: Count = UNANSWERED_TIMES

    name = "other_protocol"
    title = "Server speaks another protocol"
    protocol = "capture"
    about = "the capture itself"
    severities = ("critical", "warning")
    reads = ("exchanges", "waiting", "gaps", "connections", "commands")
    advice = (ADVICE, CLOSED_ADVICE)
    urgency = REFUSED
    texts = Texts(
        headline=_misunderstood,
        now=lambda case: begun(advised(case, "now")),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=lambda case: (
            f"{SEEN}the first bytes of the server's answer."
            if case.details.get("answers")
            else f"{SEEN}the server closed the connections before it sent a byte. {not_why('server')}"
        ),
        source=lambda case: str(case.details.get("server") or ""),
        affected=own_clients,
    )
    gathered = OF_SERVER
    claims = OTHER_PROTOCOL

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: one finding for each server, protocol asked in and protocol answered."""
        titles = {name: protocol.title for name, protocol in protocols().items()}
        (signs,) = sources.tables.rows(_SIGNS, speaks=SPEAKS)
        for row in sources.tables.rows(_FOREIGN, speaks=SPEAKS) if signs.foreign else ():
            yield _finding(
                _Server(row, titles.get(row.protocol, row.protocol), row.speaks.removeprefix(SPEAKS)), sources, settings
            )
        tls = speak_tls(seen(sources)) if signs.closed else {}
        for row in sources.tables.rows(_CLOSED) if signs.closed else ():
            if row.connections >= settings.unanswered_times:
                title = titles.get(row.protocol, row.protocol)
                yield _finding(_Server(row, title, "", is_tls=row.server in tls), sources, settings)


_SILENT: Final = int(FrameFlags.UNANSWERED | FrameFlags.CLOSED_BY_SERVER)
IS_SILENT: Final = f"coalesce(request_flags, 0) & {_SILENT} = {_SILENT}"
"""Of an exchange: the server closed the connection before it sent anything."""
_ASKED: Final = f"""
    WITH named AS (
        SELECT connection_id, coalesce(max(application), max(driver)) AS name FROM commands GROUP BY connection_id
    ), asked AS (
        SELECT connection_id, exchange_id, {ADDRESS["server"]} AS server, protocol, client_id, client_ip,
            epoch_us(request_ts) AS us, {IS_SILENT} AS is_silent, api_name
        FROM exchanges WHERE request_ts IS NOT NULL
        UNION ALL
        SELECT connection_id, exchange_id, {ADDRESS["server"]}, protocol, client_id, client_ip, epoch_us(request_ts),
            false, api_name
        FROM waiting WHERE request_ts IS NOT NULL
    )
    SELECT * REPLACE (coalesce(nullif(client_id, ''), name) AS client_id), coalesce(api_name, 'a request') AS api
    FROM asked LEFT JOIN named USING (connection_id)
"""
_EACH: Final = """
    SELECT server, protocol, speaks, list(DISTINCT api ORDER BY api) AS apis, min(us) AS first_us, max(us) AS last_us,
        count(DISTINCT connection_id) AS connections, count(DISTINCT client_ip) AS hosts,
        list(DISTINCT (coalesce(client_id, ''), client_ip) ORDER BY (coalesce(client_id, ''), client_ip)) AS callers,
        list(exchange_id ORDER BY us, exchange_id) AS evidence, list(us ORDER BY us) AS times
    FROM asked GROUP BY server, protocol, speaks ORDER BY server, protocol, speaks
"""
_FOREIGN: Final = f"""
    WITH speaking AS (
        SELECT connection_id, min(method) AS speaks FROM gaps WHERE starts_with(method, $speaks) GROUP BY connection_id
    ), asked AS (
        SELECT * FROM ({_ASKED}) AS asked JOIN speaking USING (connection_id)
        QUALIFY row_number() OVER (PARTITION BY connection_id ORDER BY us, exchange_id) = 1
    )
    {_EACH}
"""
_CLOSED: Final = f"""
    WITH answering AS (
        SELECT DISTINCT {ADDRESS["server"]} AS server FROM exchanges WHERE response_ts IS NOT NULL
    ), asked AS (
        SELECT *, '' AS speaks FROM ({_ASKED}) AS asked ANTI JOIN answering USING (server)
        ANTI JOIN (SELECT connection_id FROM gaps WHERE NOT {IS_CONNECTION}) AS lossy USING (connection_id)
        WHERE is_silent
        QUALIFY row_number() OVER (PARTITION BY connection_id ORDER BY us, exchange_id) = 1
    )
    {_EACH}
"""
_SIGNS: Final = f"""
    SELECT (SELECT count(*) FROM gaps WHERE starts_with(method, $speaks)) AS foreign,
        (SELECT count(*) FROM exchanges WHERE {IS_SILENT}) AS closed
"""
"""Most captures have neither: the queries about them are several times as dear."""


@dataclass(frozen=True, slots=True)
class _Server:
    """A server from which clients expect another protocol.

    ``speaks`` is empty where it only closes; ``is_tls``: and speaks TLS on other connections.
    """

    row: Row
    title: str
    speaks: str
    is_tls: bool = False

    @property
    def summary(self) -> str:
        """What the wire shows."""
        row = self.row
        callers = [who(name or None, host) for name, host in row.callers]
        asked = f"{self.title} requests of {first_of(callers)} ({', '.join(row.apis[:3])})"
        times = f"{pluralize(row.connections, 'connection')}, from {clock(row.first_us)} to {clock(row.last_us)} UTC"
        if self.is_tls:
            return (
                f"{row.server} closed each connection before it answered anything to {asked}, {times}, and continues "
                f"TLS handshakes of others: {self.remedy}."
            )
        if self.speaks:
            return f"{row.server} answers {self.speaks} to {asked}, on {times}: {self.remedy}."
        return (
            f"{row.server} closed each connection before it answered anything to {asked}, {times}; no client got an "
            f"answer from it. Perhaps it is a TLS listener, speaks another protocol, or has no {self.title} server "
            "behind it."
        )

    @property
    def remedy(self) -> str:
        """Why that may be."""
        return remedy(self.title, TLS if self.is_tls else self.speaks)


def _finding(one: _Server, sources: Sources, settings: OtherProtocol.Thresholds) -> Finding:
    row = one.row
    cluster = sources.catalog.cluster_at(row.server, row.last_us)
    is_certain = bool(one.speaks or one.is_tls) and row.connections >= settings.unanswered_times
    is_known = one.speaks or one.is_tls
    advice = ADVICE.format(remedy=one.remedy, server=row.server) if is_known else CLOSED_ADVICE.format(
        server=row.server
    )  # fmt: skip
    return Finding(
        rule=OtherProtocol.name, severity="critical" if is_certain else "warning",
        subject=f"{row.server}/{one.title}/{one.speaks or 'nothing'}",
        state=sources.state(cluster, row.first_us, row.last_us, row.connections), cluster=cluster, topic=None,
        partition=None, group_id=None, first_us=row.first_us, last_us=row.last_us, summary=one.summary, advice=advice,
        evidence=row.evidence[: settings.max_evidence],
        details={
            "server": row.server, "asks": one.title, "answers": one.speaks, "is_tls": one.is_tls,
            "connections_seen": row.connections,
            "clients": [who(name or None, host) for name, host in row.callers[: settings.max_evidence]],
            "hosts": sorted({host for _, host in row.callers})[: settings.max_evidence],
            "enough_us": _enough(row.times, settings.unanswered_times),
        },
    )  # fmt: skip


def _enough(times: Sequence[int], least: int) -> int:
    return int(times[min(least, len(times)) - 1])
