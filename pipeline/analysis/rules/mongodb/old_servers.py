"""Servers that a driver does not accept: it asks hello again and again, and nothing else, for the server is too old.

No error is on the wire: the driver itself refuses the server ("Server at … reports maximum wire version …, but this
version of … requires at least …"). The handshake names the driver, the reply to hello the server's wire versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.analysis.codes.mongodb.drivers import least_wire_version, mongodb_of
from pipeline.analysis.rules.format import times, who
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import FAILED
from pipeline.analysis.rules.thresholds import RuleThresholds
from pipeline.analysis.tables import Row

AREA: Final = "server too old"
"""What ``details.area`` states of these findings."""
ADVICE: Final = (
    "Now: take a release of the driver that still accepts MongoDB {has}, or a newer server: until then {client} can do "
    "nothing at {server}. Fix: update servers before drivers; of services that emulate MongoDB (Azure Cosmos DB, "
    "Amazon DocumentDB) choose a newer server version."
)
_ACCEPTED: Final = ("hello", "isMaster", "ismaster", "endSessions", "killCursors")
"""What a driver sends to a server that it does not accept."""
_ASKED: Final = f"""
    SELECT server, coalesce(application, '') AS application, client_ip, driver, driver_version,
        count(*) AS times, epoch_us(min(ts)) AS first_us, epoch_us(max(ts)) AS last_us,
        arg_max(max_wire_version, ts) AS wire_version
    FROM commands WHERE driver IS NOT NULL
    GROUP BY server, application, client_ip, driver, driver_version
    HAVING count(*) FILTER (NOT list_contains({list(_ACCEPTED)}, coalesce(command, ''))) = 0
        AND max(max_wire_version) IS NOT NULL
    ORDER BY ALL
"""
_EVIDENCE: Final = """
    SELECT exchange_id FROM commands
    WHERE server = $server AND coalesce(application, '') = $application AND client_ip = $client_ip
        AND driver = $driver AND driver_version = $version
    ORDER BY ts DESC, exchange_id DESC LIMIT $most
"""


def old_servers(sources: Sources, settings: RuleThresholds) -> Iterator[Finding]:
    """Applications whose driver asks a server only hello, because its release does not accept the server.

    Args:
        sources: ``commands`` with the driver of their connection.
        settings: how many exchanges are kept as evidence.
    """
    for row in sources.tables.rows(_ASKED):
        least = least_wire_version(row.driver, row.driver_version)
        if least is not None and row.wire_version < least:
            yield _finding(row, least, sources, settings)


def _finding(row: Row, least: int, sources: Sources, settings: RuleThresholds) -> Finding:
    client = who(row.application or None, row.client_ip)
    has, needs = mongodb_of(row.wire_version), mongodb_of(least)
    summary = (
        f"{row.server} is too old for the driver of {client}: it speaks wire versions up to {row.wire_version} "
        f"(MongoDB {has}), and {row.driver} {row.driver_version} needs {least} or newer (MongoDB {needs}). The driver "
        f"asked for hello {times(row.times, row.first_us, row.last_us)}, and sent no command."
    )
    newest = sources.tables.rows(
        _EVIDENCE, server=row.server, application=row.application, client_ip=row.client_ip, driver=row.driver,
        version=row.driver_version, most=settings.max_evidence,
    )  # fmt: skip
    return Finding(
        rule=FAILED, severity="warning", subject=f"admin/hello of {row.application or row.client_ip}",
        state=sources.state(row.server, row.first_us, row.last_us, row.times), cluster=row.server, topic=None,
        partition=None, group_id=None, first_us=row.first_us, last_us=row.last_us, summary=summary,
        advice=ADVICE.format(has=has, client=client, server=row.server),
        evidence=[one.exchange_id for one in reversed(newest)],
        details={
            "area": AREA, "server": row.server, "clients": [client], "times": row.times, "driver": row.driver,
            "driver_version": row.driver_version, "wire_version": row.wire_version, "least_wire_version": least,
            "mongodb": has, "least_mongodb": needs,
        },
    )  # fmt: skip
