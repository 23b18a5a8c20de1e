"""Rule ``resp_refused_writes``: a server refuses commands because it is full, read-only or cannot save."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.claims.model import Claim, seen
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import HOST
from pipeline.analysis.rules.case.texts import SEEN, STANDS, Texts, advised, own_clients
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.analysis.tables import ADDRESS
from pipeline.humanize import clock, pluralize

_ADVICE = {
    "OOM": "Now: free memory on {server}, or raise `maxmemory`. Fix: set an eviction policy (`maxmemory-policy`).",
    "READONLY": "Now: point the clients at the primary of {server}. Fix: let them follow failovers.",
    "MISCONF": "Now: free space on the disk of {server}; its log names the error. Fix: alert on failed saves.",
}


def _headline(case: Case) -> str:
    return f"{case.server} refuses writes: {case.details['error']}, {pluralize(case.times, 'time')}"


class RespRefusedWrites(Rule):
    """A Redis server refuses commands because it is full, read-only or cannot save."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        resp_refused_times: Count = Field(default=3, description="Commands that a Redis server refuses with one error")

    name = "resp_refused_writes"
    title = "Redis refuses writes"
    protocol = "resp"
    severities = ("critical",)
    advice = tuple(_ADVICE.values())
    shown_by = ShownBy(what="requests")
    urgency = STANDS
    texts = Texts(
        headline=_headline,
        now=lambda case: advised(case, "now"),
        fix=lambda case: advised(case, "fix"),
        reasoning=f"{SEEN}the error is the server's own answer.",
        source=lambda case: case.server,
        affected=own_clients,
    )
    causes = (Link(("connection_failed",), (HOST,), "clients that lost the primary go on to a replica"),)
    claims = (
        Claim(
            r"refuse[ds] .*(?:commands|writes)",
            "A server refuses commands, and with which error.",
            (seen("the server's error", half="response", where="protocol = 'resp' AND len(error_names) > 0"),),
        ),
    )

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """One finding a server and error."""
        rows = sources.tables.rows(
            f"""
            SELECT {ADDRESS["server"]} AS server, error, count(*) AS times,
                list_sort(list(DISTINCT client_ip)) AS hosts, min(epoch_us(ts)) AS first_us,
                max(epoch_us(ts)) AS last_us, list_sort(list(exchange_id))[:20] AS evidence
            FROM (SELECT *, unnest(error_names) AS error FROM exchanges WHERE protocol = 'resp')
            WHERE list_contains($errors, error) GROUP BY ALL HAVING times >= $least ORDER BY server, error
            """,
            errors=list(_ADVICE),
            least=settings.resp_refused_times,
        )
        return [
            Finding(
                rule=cls.name,
                severity="critical",
                subject=f"{row.server} {row.error}",
                state=sources.state(row.server, row.first_us, row.last_us, row.times),
                cluster=row.server,
                topic=None,
                partition=None,
                group_id=None,
                first_us=row.first_us,
                last_us=row.last_us,
                summary=f"{row.server} refused {row.times} commands of {pluralize(len(row.hosts), 'host')} with "
                f"{row.error} since {clock(row.first_us)} UTC.",
                advice=_ADVICE[row.error].format(server=row.server),
                evidence=list(row.evidence),
                details={"error": row.error, "times": row.times, "server": row.server, "hosts": row.hosts},
            )
            for row in rows
        ]
