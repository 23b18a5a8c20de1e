"""Connections that a server's host accepts and its process does not."""

from __future__ import annotations

from pathlib import Path

from decoder.kafka.apis import ApiKey
from tests.pipeline.analysis.rules.connections.doors import HOST, SERVER, Door, door, found, packets, rows, served
from tests.pipeline.capture.wire import SYN, Flow

AT = f"{SERVER}:9092"


def waits(number: int, seconds: float, patience: float = 5) -> Door:
    """ApiVersions is acknowledged, and the client gives up."""
    some = door(number, seconds, name="late").open()
    some.ask(ApiKey.API_VERSIONS, 2).acknowledge(1)
    return some.wait(patience).closes(0)


def answered_at_last(number: int, seconds: float, at: float) -> Door:
    """The same, and an answer comes when the client is gone."""
    some = waits(number, seconds)
    some.wait(at - seconds - 5).answer(ApiKey.API_VERSIONS, 2).reset(0)
    return some


def shut(number: int, seconds: float, host: str = HOST) -> Flow:
    """A SYN that is sent again and again."""
    some = door(number, seconds, host=host)
    for pause in (1, 2, 4):
        some.add(0, some.isn[0], 0, SYN)
        some.wait(pause)
    return some


def test_new_connections_wait_while_older_ones_are_answered(tmp_path: Path) -> None:
    some = [waits(number, 5 + 6 * number) for number in range(5)]
    (row,) = rows(tmp_path, packets(served(), *some))
    assert (row["subject"], row["severity"]) == (f"{AT}/unaccepted", "warning")
    assert "5 connections and ApiVersions on them, which nothing answers for up to 5 s" in row["summary"]


def test_they_are_taken_up_when_their_clients_are_gone(tmp_path: Path) -> None:
    some = [answered_at_last(number, 5 + 6 * number, 50) for number in range(5)]
    assert found(tmp_path, served(), *some) == {f"{AT}/unaccepted": "warning"}


def test_another_host_that_gets_nothing(tmp_path: Path) -> None:
    some = [waits(number, 5 + 6 * number) for number in range(5)]
    assert found(tmp_path, served(host="10.0.0.7"), *some) == {f"{AT}/unaccepted": "critical"}


def test_a_queue_that_was_full_before(tmp_path: Path) -> None:
    """No SYN is answered, and the same host is, on an older connection; a host that is not may have no way."""
    some = [shut(number, 5 + 6 * number) for number in range(5)]
    assert found(tmp_path, served(), *some) == {f"{AT}/unaccepted": "warning"}
    other = [shut(number, 5 + 6 * number, "10.0.0.7") for number in range(5)]
    assert found(tmp_path, served(), *other) == {}


def test_most_new_connections_are_taken_up(tmp_path: Path) -> None:
    some = [waits(number, 5 + 6 * number) for number in range(4)]
    quick = [door(100 + number, 5 + 4 * number).begun().closes(0) for number in range(6)]
    assert found(tmp_path, served(), *some, *quick) == {"unanswered_requests": "critical"}


def test_a_pause_of_the_server_is_no_limit(tmp_path: Path) -> None:
    some = [waits(number, 5 + number / 10, 4) for number in range(5)]
    paused = door(900, 0, name="beside").begun().beats(10)
    assert found(tmp_path, paused.wait(5).beats(20).closes(0), *some) == {}


def test_a_server_that_answers_nobody_is_not_full(tmp_path: Path) -> None:
    some = [waits(number, 5 + 6 * number) for number in range(5)]
    beside = door(900, 0, name="beside").begun().closes(0)
    assert found(tmp_path, beside, *some) == {"unanswered_requests": "critical"}


def test_no_syn_is_answered_and_connections_wait(tmp_path: Path) -> None:
    some = [shut(number, 8 + 6 * number) for number in range(5)]
    (row,) = rows(tmp_path, packets(waits(90, 0), waits(91, 1), *some))
    assert (row["subject"], row["severity"]) == (f"{AT}/unaccepted", "critical")
    assert "its process accepts nothing" in row["summary"]
