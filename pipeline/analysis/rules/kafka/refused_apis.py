"""Requests of Kafka that were refused, by api: where none was, nothing is asked."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row

_REFUSED = "SELECT DISTINCT api_key FROM exchanges WHERE protocol = 'kafka' AND len(error_codes) > 0"


def refused_apis(sources: Sources) -> frozenset[int]:
    """Api keys of exchanges whose response states an error code."""
    return sources.once("apis refused", lambda: frozenset(row.api_key for row in sources.tables.rows(_REFUSED)))


def refused_requests(sources: Sources, api: int, codes: Iterable[int]) -> list[tuple[str, Row]]:
    """Exchanges of an api whose response states one of some error codes, each behind its cluster.

    Rows have ``server``, ``client_id``, ``client_ip``, ``by`` (the client in words), ``us`` (µs since the epoch),
    ``exchange_id``, ``api_version``, ``request_body`` and ``response_body``.
    """
    if api not in refused_apis(sources):
        return []
    states_one = " OR ".join(f"list_contains(error_codes, {code})" for code in codes)
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip,
            coalesce(nullif(client_id, ''), '?') || ' at ' || client_ip AS "by", epoch_us(ts) AS us, exchange_id,
            api_version, request_body, response_body
        FROM exchanges WHERE protocol = 'kafka' AND api_key = {int(api)} AND ({states_one})
    """)
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in rows)
    return list(zip(clusters, rows, strict=True))
