"""``wirelake top`` shows how connections fail, also where nobody speaks."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pipeline.analysis.live_metrics.connections import EndNow, ends_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.cli import app
from pipeline.tables import CONNECTIONS
from tests.captures.connections.record import HERE
from tests.pipeline.rows import arrow

SEC = 1_000_000


def shown(name: str) -> list[str]:
    """Lines of the screen about connections of a recording."""
    done = CliRunner().invoke(app, ["top", "--once", str(HERE / f"{name}.pcap.zst")], env={"COLUMNS": "160"})
    _, mark, lines = done.stdout.partition("\nCONNECTIONS ")
    return [" ".join(line.split()) for line in (mark + lines).splitlines()[1:] if line.strip()][1:]


def test_connections_that_nobody_accepts_are_shown_without_a_message() -> None:
    (line,) = shown("nobody_listens")
    assert line.startswith("127.0.3.1:9093: refused 45 127.0.5.1 ")


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("unanswered", "127.0.3.2:9094: no answer to SYN "),
        ("tls_version", "127.0.3.8:9100: TLS alert protocol_version by the server "),
        ("idle", "127.0.3.15:9107: the server acknowledges nothing "),
        ("large_responses", "127.0.3.17:9109: the client acknowledges nothing "),
        ("limit", "127.0.3.21:9113: closed by the server "),
    ],
)
def test_the_most_frequent_end_comes_first(name: str, begin: str) -> None:
    assert shown(name)[0].startswith(begin)


def test_connections_in_good_order_are_left_out() -> None:
    assert shown("healthy_idle_at_client") == []


def row(number: int, **values: object) -> dict[str, object]:
    common = {
        "connection_id": str(number), "flow_id": str(number), "connections": 1, "server_ip": "10.0.0.9",
        "server_port": 9092, "client_ip": f"10.0.0.{number}", "is_failed": True, "ended": "refused", "how": "refused",
        "last_ts": (90 + number) * SEC, "client_bytes": 10, "server_bytes": 5,
    }  # fmt: skip
    return {**common, **values}


def test_what_is_outside_of_the_window_or_counts_elsewhere_is_left_out() -> None:
    reads_not = {"is_failed": False, "ended": "open", "how": "served", "server_stalled_us": 5 * SEC}
    rows = [
        row(1), row(2), row(3, connections=40), row(4, counted_connection_id="1"), row(-80), row(5, **reads_not),
        row(6, is_failed=False, ended="closed by the client", how="served"),
    ]  # fmt: skip
    first, second = ends_now(arrow(CONNECTIONS, rows), Window(60 * SEC, 120 * SEC))
    assert first == EndNow("10.0.0.9:9092", "refused", 42, 3, 93 * SEC, "10.0.0.1", 45, is_unmade=True)
    assert (second.ended, second.connections, second.is_unmade) == ("the server does not read", 1, False)
