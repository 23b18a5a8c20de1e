"""``wirelake decode --tcp`` shows how connections begin and end between the messages, and names who did it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from tests.captures.connections.record import HERE
from tests.pipeline.capture.wire import ACK, FIN, RST, Flow, pcap, request, response

SEC = 1_000_000


def decoded(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["decode", *arguments])


def words(done: Result) -> list[tuple[str, ...]]:
    """Of each line what is behind the ends: an event, or an api."""
    return [tuple(line.split()) for line in done.stdout.splitlines()]


@pytest.fixture
def capture(tmp_path: Path) -> str:
    """A connection that is answered and closed by the client, and one without a begin that the server resets."""
    whole = Flow(client=("10.0.0.5", 41000), server=("10.0.0.9", 9092), ts=SEC)
    whole.open().send(0, request(1)).send(1, response(1)).close()
    late = Flow(client=("10.0.0.6", 42000), server=("10.0.0.9", 9092), ts=3 * SEC).reset(1)
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap([*whole.packets, *late.packets]))
    return str(path)


def test_events_stand_between_messages_in_the_order_of_time(capture: str) -> None:
    done = decoded(capture, "--tcp", "--json")
    found = [(one.get("tcp") or one["api_name"], one["direction"]) for one in map(json.loads, done.stdout.splitlines())]
    assert found == [
        ("SYN", "request"), ("SYN ACK", "response"), ("ApiVersions", "request"), ("ApiVersions", "response"),
        ("FIN", "request"), ("FIN", "response"), ("RST", "response"),
    ]  # fmt: skip
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("chosen", "number"),
    [
        (["--host", "10.0.0.6"], 1),
        (["--connection", "10.0.0.5:41000"], 6),
        (["--since", "00:00:02"], 1),
        (["--api", "Metadata"], 5),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_ends_and_times_choose_among_events(capture: str, chosen: list[str], number: int) -> None:
    assert len(decoded(capture, "--tcp", *chosen).stdout.splitlines()) == number


def test_a_capture_without_a_message_shows_how_its_connections_ended() -> None:
    done = decoded(str(HERE / "nobody_listens.pcap.zst"), "--tcp")
    assert done.exit_code == 0
    assert {line[-1] for line in words(done)} == {"SYN", "RST"}


def test_an_alert_is_named_with_who_sent_it() -> None:
    done = decoded(str(HERE / "certificate_refused_tls12.pcap.zst"), "--tcp")
    assert {line[2] for line in words(done) if line[-1] == "unknown_ca"} == {"→"}


@pytest.mark.parametrize("more", [["--records"], ["--follow"], ["--connection", "0123456789abcdef"]])
def test_what_has_no_events_is_wrong_use(capture: str, more: list[str]) -> None:
    assert decoded(capture, "--tcp", *more).exit_code != 0


def test_flags_that_no_connection_has_are_shown_all_the_same(tmp_path: Path) -> None:
    some = Flow(client=("10.0.0.5", 41000), server=("10.0.0.9", 9092), ts=SEC)
    some.add(0, 1, 0, FIN | RST)
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(some.packets))
    (line,) = words(decoded(str(path), "--tcp"))
    assert line[-1] == "RST"


def test_a_side_that_has_no_room_is_shown_once_and_when_it_has_some_again(tmp_path: Path) -> None:
    some = Flow(client=("10.0.0.5", 41000), server=("10.0.0.9", 9092), ts=SEC).open()
    for window in (0, 0, 0, 65_535, 65_535):
        some.add(0, some.seq[0], some.seq[1], ACK, window=window)
    some.add(1, some.seq[1], some.seq[0], ACK, window=0)
    some.close()
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(some.packets))
    found = [json.loads(line) for line in decoded(str(path), "--tcp", "--json").stdout.splitlines()]
    assert [(one["tcp"], one["direction"]) for one in found] == [
        ("SYN", "request"), ("SYN ACK", "response"), ("ZERO WINDOW", "request"), ("WINDOW OPEN", "request"),
        ("ZERO WINDOW", "response"), ("FIN", "request"), ("FIN", "response"),
    ]  # fmt: skip


def test_a_recording_of_a_client_that_does_not_read_shows_its_windows() -> None:
    lines = words(decoded(str(HERE / "client_full.pcap.zst"), "--tcp"))
    assert {line[2] for line in lines if line[-2:] == ("ZERO", "WINDOW")} == {"→"}
