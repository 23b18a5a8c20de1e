"""Why a client does not connect is found, and nothing is claimed of what is healthy or half seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.capture.packets.packet import Packet
from pipeline.cli import app
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.capture.wire import ACK, FIN, RST, SYN, Flow, pcap, request, response

START, SEC = 1_700_000_000_000_000, 1_000_000
SERVER, HOST = "10.0.0.9", "10.0.0.5"
SASL_HANDSHAKE, METADATA = 17, 3
HELLO = b"\x16\x03\x01\x00\x30\x01" + bytes(0x2F)
UNKNOWN_CA = b"\x15\x03\x03\x00\x02\x02\x30"


def flow(number: int, seconds: float, *, port: int = 9092, host: str = HOST) -> Flow:
    return Flow(client=(host, 41000 + number), server=(SERVER, port), ts=START + int(seconds * SEC))


def refused(number: int, seconds: float, *, port: int = 9092) -> Flow:
    some = flow(number, seconds, port=port)
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def served(number: int, seconds: float) -> Flow:
    """A connection on which the broker answers Metadata."""
    some = flow(number, seconds).open().send(0, request(1)).send(1, response(1))
    metadata = bytes(4) + bytes(4) + bytes(4)  # no brokers, no controller, no topics
    return some.send(0, request(2, key=METADATA, version=1, body=bytes(4))).send(1, response(2, metadata)).close()


def thrown_out(number: int, seconds: float) -> Flow:
    """ApiVersions is answered, Metadata makes the server close."""
    some = flow(number, seconds).open().send(0, request(1)).send(1, response(1))
    some.send(0, request(2, key=METADATA, version=1, body=bytes(4)))
    some.add(1, some.seq[1], some.seq[0], FIN | ACK)
    some.add(0, some.seq[0], some.seq[1] + 1, FIN | ACK)
    return some


def forgotten(number: int, seconds: float, *, pause: float = 60, resets: bool = False) -> Flow:
    """A request after a pause that is never acknowledged, or that a reset answers."""
    some = flow(number, seconds).open().send(0, request(1)).send(1, response(1)).acknowledge(0)
    some.ts += int(pause * SEC)
    data, seq = request(2), some.seq[0]
    if resets:
        some.send(0, data)
        some.add(1, some.seq[1], 0, RST)
        return some
    for wait in (0.2, 0.4, 0.8, 1.6, 3.2):
        some.add(0, seq, some.seq[1], ACK, data)
        some.ts += int(wait * SEC)
    some.add(0, seq + len(data), 0, RST)
    return some


def packets(*flows: Flow) -> list[Packet]:
    return sorted((packet for one in flows for packet in one.packets), key=lambda packet: packet.ts_us)


def found(tmp_path: Path, some: Iterable[Packet]) -> dict[str, str]:
    """Subjects of the rule with their severities."""
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(some))
    done = CliRunner().invoke(app, ["diagnose", "--json", str(path)])
    assert "internal error" not in done.output
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["subject"]: row["severity"] for row in rows if row["rule"] == "connection_failed"}


def test_a_port_where_nobody_listens(tmp_path):
    assert found(tmp_path, packets(*(refused(n, n) for n in range(5)))) == {f"{SERVER}:9092/refused": "critical"}


def test_a_server_that_comes_back_was_restarted(tmp_path):
    some = [served(0, 0), *(refused(n, 5 + n) for n in range(1, 20)), served(30, 40)]
    assert found(tmp_path, packets(*some)) == {}


def test_a_server_that_is_down_for_less_than_a_restart_takes(tmp_path):
    some = [served(0, 0), *(refused(n, 5 + n) for n in range(1, 20))]
    assert found(tmp_path, packets(*some)) == {}


def test_a_server_that_is_down_for_longer_is_a_warning(tmp_path):
    some = [served(0, 0), *(refused(n, 5 + 4 * n) for n in range(1, 20))]
    assert found(tmp_path, packets(*some)) == {f"{SERVER}:9092/refused": "warning"}


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [
        pytest.param([], {f"{SERVER}:9092/refused": "warning"}, id="nobody is answered"),
        pytest.param([served(40, 45)], {}, id="somebody is answered"),
    ],
)
def test_a_server_that_was_down_for_longer_and_is_back(
    meanwhile: list[Flow], expected: dict[str, str], tmp_path: Path
) -> None:
    some = [served(0, 0), *(refused(n, 5 + 4 * n) for n in range(1, 20)), *meanwhile, served(30, 90)]
    assert found(tmp_path, packets(*some)) == expected


def test_a_port_of_something_else_is_none_of_ours(tmp_path):
    some = [served(0, 0), *(refused(n, n, port=8080) for n in range(1, 20))]
    assert found(tmp_path, packets(*some)) == {}


def test_a_scan_is_no_server(tmp_path):
    assert found(tmp_path, packets(*(refused(n, n / 100, port=20_000 + n) for n in range(500)))) == {
        f"{SERVER}/scan": "info"
    }


def test_a_flood_of_syns_is_no_firewall(tmp_path):
    """Each comes once, of an address of its own; most of them are counted without a row."""

    def asks(number: int) -> Flow:
        some = flow(number % 20_000, number / 200, host=f"11.0.{number // 250}.{number % 250 + 1}")
        some.add(0, some.isn[0], 0, SYN)
        return some

    assert found(tmp_path, packets(*map(asks, range(3000)))) == {f"{SERVER}:9092/flood": "info"}
    assert found(tmp_path, packets(*map(asks, range(500)))) == {}


def test_of_a_flood_what_was_not_read_is_counted(tmp_path):
    """45,000 SYNs within half a second are more than strangers may cost; a later packet shows that nothing follows."""

    def asks(number: int) -> Flow:
        some = flow(number % 20_000, number / 100_000, host=f"11.0.{number // 250}.{number % 250 + 1}")
        some.add(0, some.isn[0], 0, SYN)
        return some

    capture = tmp_path / "some.pcap"
    capture.write_bytes(pcap(packets(*map(asks, range(45_000)), refused(20_001, 20, port=1))))
    (row,) = diagnose(read_inputs([str(capture)]), StreamSettings()).findings.to_pylist()
    numbers = re.findall(r"([\d,]+) (?:more )?SYNs", row["summary"])
    of_server, unread = (int(number.replace(",", "")) for number in numbers)
    assert min(of_server, unread) > 1_000
    assert of_server + unread <= 45_000


def test_a_server_that_is_away_from_many_clients_is_no_flood(tmp_path):
    def tries(number: int) -> Flow:
        some = flow(number % 20_000, number / 200, host=f"11.0.{number // 250}.{number % 250 + 1}")
        for wait in (1, 2, 4):
            some.add(0, some.isn[0], 0, SYN)
            some.ts += wait * SEC
        return some

    assert found(tmp_path, packets(*map(tries, range(1500)))) == {f"{SERVER}:9092/unanswered": "critical"}


def test_a_server_that_answers_no_syn(tmp_path):
    def tries(number: int) -> Flow:
        some = flow(number, 10 * number)
        for wait in (1, 2, 4):
            some.add(0, some.isn[0], 0, SYN)
            some.ts += wait * SEC
        return some

    some = packets(*(tries(n) for n in range(3)))
    assert found(tmp_path, some) == {f"{SERVER}:9092/unanswered": "critical"}


def test_one_direction_alone_shows_nothing(tmp_path):
    """A capture without the server's packets: its SYN-ACKs are missing, the clients continue."""
    some = [p for p in packets(*(served(n, n) for n in range(20))) if p.data[26:30] == bytes((10, 0, 0, 5))]
    assert some
    assert found(tmp_path, some) == {}


def test_a_client_without_a_login(tmp_path):
    some = packets(*(thrown_out(n, n) for n in range(5)))
    assert found(tmp_path, some) == {f"{SERVER}:9092/sasl/demo/{HOST}": "critical"}


def test_a_server_that_serves_others_without_a_login(tmp_path):
    """It closes connections for another reason: a restart, or a limit."""
    some = packets(served(50, 0), *(thrown_out(n, n) for n in range(1, 6)))
    assert found(tmp_path, some) == {}


@pytest.mark.parametrize("resets", [False, True], ids=["silence", "reset"])
def test_a_connection_that_is_forgotten_after_a_pause(tmp_path, resets):
    some = packets(*(forgotten(n, 70 * n, resets=resets) for n in range(3)))
    assert found(tmp_path, some) == {f"{SERVER}:9092/idle/demo/{HOST}": "warning"}


OTHER_ENDS = {
    "at once": [forgotten(n, n / 10, resets=True) for n in range(6)],
    "without a pause": [forgotten(n, 70 * n, pause=5) for n in range(3)],
    "different pauses": [forgotten(0, 0, pause=40), forgotten(1, 300, pause=600), forgotten(2, 1200, pause=2000)],
    "once": [forgotten(0, 0)],
}


@pytest.mark.parametrize("flows", OTHER_ENDS.values(), ids=list(OTHER_ENDS))
def test_other_ends_of_idle_connections_show_no_limit(tmp_path, flows):
    assert found(tmp_path, packets(*flows)) == {}


def test_an_alert_names_why_a_handshake_ends(tmp_path):
    some = [flow(n, n).open().send(0, HELLO).send(1, b"\x16\x03\x03\x00\x04\x02\0\0\0").send(0, UNKNOWN_CA).close()
            for n in range(4)]  # fmt: skip
    assert found(tmp_path, packets(*some)) == {f"{SERVER}:9092/client-certificate": "critical"}


CERTIFICATE = b"\x16\x03\x03\x00\x04\x02\0\0\0\x14\x03\x03\0\x01\x01\x17\x03\x03\x01\x00" + bytes(256)
"""ServerHello, change of cipher, and what is encrypted."""
FINISHED, HIDDEN = b"\x17\x03\x03\0\x35" + bytes(0x35), b"\x17\x03\x03\0\x13" + bytes(0x13)


def closed_by(side: int, some: Flow) -> Flow:
    some.add(side, some.seq[side], some.seq[1 - side], FIN | ACK)
    some.add(1 - side, some.seq[1 - side], some.seq[side] + 1, FIN | ACK)
    return some


def hidden(side: int) -> Callable[[int], Flow]:
    """A handshake that one side ends with an encrypted alert."""

    def one(number: int) -> Flow:
        some = flow(number, number).open().send(0, HELLO).send(1, CERTIFICATE)
        if side:
            some.send(0, FINISHED)
        return closed_by(side, some.send(side, HIDDEN))

    return one


@pytest.mark.parametrize(("side", "who"), [(0, "client"), (1, "server")], ids=["client", "server"])
def test_an_alert_that_is_encrypted_shows_by_its_size(tmp_path, side, who):
    some = packets(*map(hidden(side), range(4)))
    assert found(tmp_path, some) == {f"{SERVER}:9092/{who}-certificate": "critical"}


def test_tls_that_ends_in_good_order(tmp_path):
    """A request is answered, then either side says goodbye by an encrypted alert of the same size, a server later."""

    def served_by(number: int) -> Flow:
        some = flow(number, number).open().send(0, HELLO).send(1, CERTIFICATE).send(0, FINISHED)
        some.send(0, FINISHED).send(1, FINISHED)
        some.ts += number % 2 * 8 * SEC
        some.send(number % 2, HIDDEN)
        return closed_by(number % 2, some)

    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(packets(*map(served_by, range(10)))))
    done = CliRunner().invoke(app, ["diagnose", str(path)])
    assert "encrypted (TLS)" in str(done.exception)


def answered_and_closed(number: int, side: int, seconds: float) -> Flow:
    """A request is answered, then one side says goodbye, and the other follows."""
    some = flow(number, seconds).open().send(0, HELLO).send(1, CERTIFICATE).send(0, FINISHED)
    some.send(0, FINISHED).send(1, FINISHED).send(side, HIDDEN)
    return closed_by(1, some)  # a server may take the goodbye for the end, and close first


@pytest.mark.parametrize(
    ("side", "expected"), [(0, {}), (1, {f"{SERVER}:9092/tls-cut/10.0.0.5": "critical"})], ids=["client", "server"]
)
def test_a_server_that_ends_tls_connections_soon_wants_a_login(
    tmp_path: Path, side: int, expected: dict[str, str]
) -> None:
    """Neither certificate is refused: the server answered before. Clients that have done their work close first."""
    refused_ports = (refused(number, number, port=1) for number in range(2))  # without a finding of its own
    some = [answered_and_closed(number, side, number) for number in range(10)]
    assert found(tmp_path, packets(*some, *refused_ports)) == expected


def test_a_host_whose_tls_connection_lasts_gets_in(tmp_path: Path) -> None:
    lasts = flow(50, 0.5).open().send(0, HELLO).send(1, CERTIFICATE).send(0, FINISHED)
    for _ in range(20):
        lasts.send(0, FINISHED).send(1, FINISHED)
        lasts.ts += SEC
    some = [answered_and_closed(number, 1, number) for number in range(10)]
    assert found(tmp_path, packets(lasts, *some, refused(99, 1, port=1))) == {}


def test_tls_at_a_plain_listener(tmp_path):
    def closed(number: int) -> Flow:
        some = flow(number, number).open().send(0, HELLO)
        some.add(1, some.seq[1], some.seq[0], FIN | ACK)
        some.add(0, some.seq[0], some.seq[1] + 1, FIN | ACK)
        return some

    assert found(tmp_path, packets(*map(closed, range(4)))) == {f"{SERVER}:9092/no-tls": "critical"}


def test_a_server_that_accepts_and_closes(tmp_path):
    def closed(number: int) -> Flow:
        some = flow(number, number).open()
        some.add(1, some.seq[1], some.seq[0], FIN | ACK)
        some.add(0, some.seq[0], some.seq[1] + 1, FIN | ACK)
        return some

    assert found(tmp_path, packets(*map(closed, range(4)))) == {f"{SERVER}:9092/closed": "warning"}


def test_a_health_check_that_connects_and_closes(tmp_path):
    assert found(tmp_path, packets(*(flow(n, n).open().close() for n in range(20)))) == {}


def test_an_alert_behind_the_close_of_a_plain_listener_is_no_cause(tmp_path):
    """OpenSSL ends a handshake that broke off by an alert (decode_error)."""

    def closed(number: int) -> Flow:
        some = flow(number, number).open().send(0, HELLO)
        some.add(1, some.seq[1], some.seq[0], FIN | ACK)
        some.seq[1] += 1
        some.send(0, b"\x15\x03\x01\x00\x02\x02\x32")
        some.add(0, some.seq[0], some.seq[1], FIN | ACK)
        return some

    assert found(tmp_path, packets(*map(closed, range(4)))) == {f"{SERVER}:9092/no-tls": "critical"}


def test_a_certificate_refused_by_alerts_of_several_names_is_one_cause(tmp_path):
    clear = [flow(n, n).open().send(0, HELLO).send(1, b"\x16\x03\x03\x00\x04\x02\0\0\0").send(0, UNKNOWN_CA).close()
             for n in range(4)]  # fmt: skip
    hid = [hidden(0)(10 + n) for n in range(4)]
    assert found(tmp_path, packets(*clear, *hid)) == {f"{SERVER}:9092/client-certificate": "critical"}
