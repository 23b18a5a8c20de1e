"""ICMP errors state who rejects connections, where no way leads, and which MTU a path has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.analysis.icmp import is_refusal, name_of
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, each, found, packets, rows, served
from tests.pipeline.analysis.rules.connections.test_stuck import TOO_LARGE, sends
from tests.pipeline.capture.icmp_errors import icmp_about
from tests.pipeline.capture.wire import SYN, Flow

AT, ROUTER = f"{SERVER}:9092", "10.0.0.1"
PROHIBITED, PORT, NO_HOST, EXPIRED, TOO_BIG = (3, 13), (3, 3), (3, 1), (11, 0), (3, 4)


def told(number: int, kind: tuple[int, int] = PROHIBITED, *, seconds: float = 0, host: str = HOST) -> Door:
    """One SYN, which a router answers."""
    some = door(number, seconds + number, host=host)
    syn = some.add(0, some.isn[0], 0, SYN)
    some.packets.append(icmp_about(syn, ROUTER, host, *kind))
    return some


@pytest.mark.parametrize(
    ("kind", "shape", "words"),
    [
        (PROHIBITED, "rejected", "10.0.0.1 reports by ICMP: administratively prohibited"),
        (PORT, "rejected", "10.0.0.1 reports by ICMP: port unreachable"),
        (NO_HOST, "no-route", "10.0.0.5 has no way to 10.0.0.9:9092: 10.0.0.1 reports by ICMP: host unreachable"),
        (EXPIRED, "no-route", "time to live exceeded"),
    ],
)
def test_who_rejects_or_knows_no_way_is_named(tmp_path: Path, kind: tuple[int, int], shape: str, words: str) -> None:
    some = each(lambda number: told(number, kind), 10)
    (row,) = rows(tmp_path, packets(*some))
    assert (row["rule"], row["subject"], row["severity"]) == ("connection_failed", f"{AT}/{shape}", "critical")
    assert words in row["summary"]


def test_so_it_is_by_ipv6(tmp_path: Path) -> None:
    def asks(number: int) -> Flow:
        some = door(number, number, host="fd00::5", server="fd00::9")
        some.packets.append(icmp_about(some.add(0, some.isn[0], 0, SYN), "fd00::1", "fd00::5", 1, 1))
        return some

    (row,) = rows(tmp_path, packets(*each(asks, 10)))
    assert row["subject"] == "[fd00::9]:9092/rejected"
    assert "fd00::1 reports by ICMP: administratively prohibited" in row["summary"]


def test_one_host_is_rejected_while_others_are_served(tmp_path: Path) -> None:
    some = each(lambda number: told(number, seconds=5), 80)
    assert found(tmp_path, served(120, host="10.0.0.6"), *some) == {f"{AT}/rejected": "warning"}


def test_what_is_rejected_while_a_server_restarts_is_no_failure(tmp_path: Path) -> None:
    """Kubernetes answers so for a service without ready pods."""
    some = each(lambda number: told(number, seconds=5), 20)
    assert found(tmp_path, door(800, 0).begun().beats(6).closes(0), *some, door(801, 40).begun().beats(20)) == {}


def test_one_alone_is_no_failure(tmp_path: Path) -> None:
    assert found(tmp_path, told(0), told(1, seconds=8)) == {}


def test_the_mtu_of_the_path_is_named(tmp_path: Path) -> None:
    """The message is in the capture, and a firewall of the sender's host drops it."""
    some = each(sends, 4)
    for one in some:
        large = max(one.packets, key=lambda packet: packet.original_length)
        one.packets.append(icmp_about(large, ROUTER, HOST, *TOO_BIG, mtu=1280, after_us=20))
    found_rows = [row for row in rows(tmp_path, packets(*some)) if row["severity"] != "info"]
    assert {row["subject"]: row["severity"] for row in found_rows} == TOO_LARGE
    assert "10.0.0.1 reports by ICMP that the path carries 1,280 bytes a packet (MTU)" in found_rows[0]["summary"]


def test_a_sender_that_heeds_the_message_has_no_failure(tmp_path: Path) -> None:
    some = each(lambda number: sends(number, acknowledged=True), 4)
    for one in some:
        large = max(one.packets, key=lambda packet: packet.original_length)
        one.packets.append(icmp_about(large, ROUTER, HOST, *TOO_BIG, mtu=1280, after_us=20))
    assert found(tmp_path, *some) == {}


def test_a_type_and_code_without_a_name_is_stated_by_its_numbers() -> None:
    assert name_of(3, 200, is_v6=False) == "type 3, code 200"
    assert not is_refusal(3, 200, is_v6=False)
