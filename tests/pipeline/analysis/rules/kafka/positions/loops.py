"""A group that gets on, then fetches from one offset again and again."""

from __future__ import annotations

from collections.abc import Callable

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "orders-app"
WELL, ILL = 40, 120
"""Seconds in which all is well, and in which it is not. A second brings three records."""
AT = 3 * WELL
Answer = Callable[[int], bytes]


def loops(
    answer: Answer, *, version: int = 11, session: bool = False, level: int = 0, committing: bool = True,
    ill: int = ILL, after: int = 0, stable: bool = False, new_each: int = 0,
) -> Stage:  # fmt: skip
    """A group that gets on, then fetches from one offset, then gets on again for a while."""
    stage = Stage()
    worker = Client("worker", GROUP, 42_000, "worker-1", version=version)
    stage.join(0.1, worker, [0])
    position = 0
    for second in range(WELL + ill + after):
        end = 3 * (second + 1)
        stage.produce(second + 0.2, 0, end - 3, 3)
        is_ill = WELL <= second < WELL + ill
        if is_ill and new_each and (second - WELL) % new_each == 0:
            worker = Client("worker", GROUP, 42_100 + second, f"worker-{second}", second, version=version)
            stage.join(second + 0.3, worker, [0])
        came = answer(end) if is_ill else records(position, end - position)
        epoch = (7, second) if session else (0, -1)
        named = None if not session or not is_ill or second == WELL else ()
        stage.fetch(
            second + 0.5, worker, (0, position, end, came), session=epoch, named=named, level=level,
            stable=position if stable and is_ill else None,
        )  # fmt: skip
        position = position if is_ill else end
        if committing and second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: position})
        stage.heartbeat(second + 0.8, worker)
    return stage


def records_again(_end: int) -> bytes:
    """The same records each time."""
    return records(AT, 3)


def alone(
    *, grows: bool = True, further: bool = False, ahead: bool = False, new_each: int = 0, heals: bool = False
) -> Stage:
    """A reader without a group that gets on, then gets the same records again and again.

    Args:
        grows: whether more is written meanwhile.
        further: whether it reads further on in between, and goes back.
        ahead: whether its library fetches further each time, before it goes back.
        new_each: after how many seconds each a new connection takes its place.
        heals: whether it continues at last.
    """
    stage, viewer = Stage(), Client("viewer", "", 45_000)
    for second in range(WELL + ILL):
        is_ill = WELL <= second < WELL + ILL - 10 * heals
        end = 3 * (second + 1) if grows or second < WELL else AT + 30
        if grows or second <= WELL:
            stage.produce(second + 0.2, 0, 3 * second, 3 if second < WELL else end - 3 * second)
        if is_ill and new_each and second % new_each == 0:
            viewer = Client("viewer", "", 45_000 + second)
        stage.fetch(second + 0.5, viewer, (0, AT if is_ill else end - 3, end, records(AT if is_ill else end - 3, 3)))
        if is_ill and ahead:
            stage.fetch(second + 0.6, viewer, (0, end, end + 1, records(end, 1)))
        if is_ill and further and second % 10 == 0:
            stage.fetch(second + 0.6, viewer, (0, end, end, b""))
    return stage
