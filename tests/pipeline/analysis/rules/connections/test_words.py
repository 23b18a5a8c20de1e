"""Summaries name what the settings of the client can be compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.connections.doors import packets, rows
from tests.pipeline.analysis.rules.test_connection_failed import flow, forgotten
from tests.pipeline.capture.sessions.test_connection_rows import client_hello

_ALERT = b"\x15\x03\x01\x00\x02\x02"


def summaries(tmp_path: Path, *flows: object) -> list[str]:
    found = rows(tmp_path, packets(*flows))  # type: ignore[arg-type]
    return [row["summary"] for row in found if row["rule"] == "connection_failed"]


@pytest.mark.parametrize(
    ("code", "is_named"), [(70, True), (40, True), (48, False)], ids=["version", "handshake", "issuer"]
)
def test_an_alert_about_versions_states_what_the_client_offers(tmp_path: Path, *, code: int, is_named: bool) -> None:
    some = [flow(n, n).open().send(0, client_hello()).send(1, _ALERT + bytes([code])).close() for n in range(4)]
    (summary,) = summaries(tmp_path, *some)
    assert ("the client offers up to TLS 1.3)" in summary) == is_named


def test_an_idle_limit_is_compared_with_the_clients_own(tmp_path: Path) -> None:
    (summary,) = summaries(tmp_path, *(forgotten(n, 70 * n) for n in range(3)))
    assert "connections.max.idle.ms of the client (unless set 9 min in Java, no limit in librdkafka)" in summary
