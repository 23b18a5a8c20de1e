"""Rule ``resp_refused_writes``: a server refuses commands because it is full, read-only or cannot save."""

from __future__ import annotations

from pipeline.analysis.rules.model import Finding, Sources, clock
from pipeline.analysis.rules.rule import Rule
from pipeline.analysis.tables import ADDRESS
from pipeline.finding_settings import FindingSettings

_ADVICE = {
    "OOM": "The server holds as much as `maxmemory` allows and evicts nothing: give it more, or an eviction policy.",
    "READONLY": "The clients talk to a replica: they follow no failover, or have its address configured.",
    "MISCONF": "The server cannot save to its disk: look at its log and free space.",
}


class RespRefusedWrites(Rule):
    """A Redis server refuses commands because it is full, read-only or cannot save."""

    name = "resp_refused_writes"
    title = "Redis refuses writes"
    protocol = "resp"
    severities = ("critical",)
    advice = tuple(_ADVICE.values())

    @classmethod
    def detect(cls, sources: Sources, settings: FindingSettings) -> list[Finding]:
        """One finding a server and error."""
        del settings
        rows = sources.tables.rows(
            f"""
            SELECT {ADDRESS["server"]} AS server, error, count(*) AS times, count(DISTINCT client_ip) AS hosts,
                min(epoch_us(ts)) AS first_us, max(epoch_us(ts)) AS last_us, min(exchange_id) AS evidence
            FROM (SELECT *, unnest(error_names) AS error FROM exchanges WHERE protocol = 'resp')
            WHERE list_contains($errors, error) GROUP BY ALL ORDER BY server, error
            """,
            errors=list(_ADVICE),
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
                summary=f"{row.server} refused {row.times} commands of {row.hosts} hosts with {row.error} since "
                f"{clock(row.first_us)} UTC.",
                advice=_ADVICE[row.error],
                evidence=[row.evidence],
                details={"error": row.error, "times": row.times},
            )
            for row in rows
        ]
