"""A server that does not answer by one address family cuts nobody off whose name has addresses of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.analysis.rules.test_connection_failed import SEC, START, found, packets, served
from tests.pipeline.capture.wire import ACK, RST, SYN, Flow

SIX, OTHER = "2001:db8::9", "2001:db8::5"
SUBJECT = f"[{SIX}]:9092"


def refused(number: int, seconds: float) -> Flow:
    some = Flow(client=(OTHER, 42000 + number), server=(SIX, 9092), ts=START + int(seconds * SEC))
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def unanswered(number: int, seconds: float) -> Flow:
    some = Flow(client=(OTHER, 42000 + number), server=(SIX, 9092), ts=START + int(seconds * SEC))
    for wait in (1, 2, 4):
        some.add(0, some.isn[0], 0, SYN)
        some.ts += wait * SEC
    return some


def test_who_connects_at_once_by_the_other_family_loses_nothing(tmp_path: Path) -> None:
    some = [one for n in range(6) for one in (refused(n, 5 * n), served(n, 5 * n + 0.01))]
    assert found(tmp_path, packets(*some)) == {f"{SUBJECT}/other-family": "info"}


def test_who_waits_for_the_other_family_is_slow(tmp_path: Path) -> None:
    some = [one for n in range(6) for one in (unanswered(n, 20 * n), served(n, 20 * n + 10))]
    assert found(tmp_path, packets(*some)) == {f"{SUBJECT}/other-family": "warning"}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="nobody else"),
        pytest.param([served(50, 12.5)], id="one connection for all attempts"),
        pytest.param([served(50 + n, 0.5 * n) for n in range(60)], id="others that connect by themselves"),
        pytest.param([served(50 + n, 200 + n) for n in range(6)], id="later"),
    ],
)
def test_another_host_that_connects_meanwhile_excuses_nothing(tmp_path: Path, others: list[Flow]) -> None:
    some = [refused(n, 5 * n) for n in range(6)]
    assert found(tmp_path, packets(*some, *others)) == {f"{SUBJECT}/refused": "critical"}
