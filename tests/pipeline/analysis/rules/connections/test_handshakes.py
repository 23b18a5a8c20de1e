"""TLS handshakes without an alert: whether the listener speaks TLS is judged by all that it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.connections.doors import SERVER, Door, cut, door, each, found, packets, rows
from tests.pipeline.analysis.rules.test_connection_failed import CERTIFICATE, FINISHED, HELLO, HIDDEN

AT = f"{SERVER}:9092"
HTTP = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


def hello(number: int, seconds: float | None = None) -> Door:
    some = door(number, number + 2 if seconds is None else seconds)
    some.open().send(0, HELLO)
    return some


def goes_on(seconds: float, lasting: int, number: int = 900) -> Door:
    """A connection that speaks TLS, as long as that."""
    some = hello(number, seconds)
    some.send(1, CERTIFICATE).send(0, FINISHED)
    for _ in range(lasting):
        some.send(0, FINISHED).send(1, FINISHED)
        some.wait(1)
    return some


@pytest.mark.parametrize("resets", [False, True], ids=["close", "reset"])
def test_a_listener_that_speaks_tls_with_others(tmp_path: Path, *, resets: bool) -> None:
    some = each(lambda number: hello(number).reset(1) if resets else hello(number).closes(1))
    assert found(tmp_path, *some) == {f"{AT}/no-tls": "critical"}
    assert found(tmp_path, goes_on(0.5, 30), *some) == {f"{AT}/tls-closed": "warning"}


def test_a_listener_that_is_restarted(tmp_path: Path) -> None:
    some = each(lambda number: hello(number, 10 + number).closes(1))
    assert found(tmp_path, goes_on(0.5, 8), *some, goes_on(20, 8, 901), door(1, 30).begun().beats(3)) == {}


def test_http_answers_a_handshake(tmp_path: Path) -> None:
    def answered(number: int) -> Door:
        some = hello(number)
        some.send(1, HTTP)
        return some.closes(1)

    (row,) = rows(tmp_path, packets(*each(answered)))
    assert (row["subject"], row["severity"]) == (f"{AT}/no-tls", "critical")
    assert "answers HTTP to the TLS handshakes" in row["summary"]


def test_nothing_answers_a_handshake(tmp_path: Path) -> None:
    def waits(number: int, patience: float) -> Door:
        some = hello(number, 20 * number)
        some.acknowledge(1)
        return some.wait(patience).closes(0)

    assert found(tmp_path, *each(lambda number: waits(number, 10))) == {f"{AT}/tls-unanswered": "critical"}
    at_once = each(lambda number: waits(number, 0.1))
    assert found(tmp_path, *at_once, door(900, 0).begun().beats(3)) == {}


def test_a_request_in_clear_at_a_listener_that_speaks_tls_with_others(tmp_path: Path) -> None:
    some = each(lambda number: cut(number, number, asks=True))
    assert found(tmp_path, *some) == {"other_protocol": "warning"}
    assert found(tmp_path, goes_on(0.5, 30), *some) == {"other_protocol": "critical"}


def test_a_client_that_closes_in_good_order_is_not_refused(tmp_path: Path) -> None:
    """The broker states that it closes, too, once the client has: in a record of an alert's size."""

    def closes(number: int) -> Door:
        some = hello(number)
        some.send(1, CERTIFICATE).send(0, FINISHED).send(0, FINISHED).send(1, FINISHED).send(0, HIDDEN).send(1, HIDDEN)
        return some.closes(0)

    assert found(tmp_path, *each(closes), door(900, 0).begun().beats(3)) == {}
