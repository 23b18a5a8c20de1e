"""A group that a tool sets back."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "orders-app"


def set_back(*, well: int = 60, after: int = 20) -> Stage:
    """A member reads on, a tool commits an old offset while it is stopped, and the next one reads from there.

    Args:
        well: seconds before.
        after: seconds afterwards, in which it does not get back to where it was.
    """
    stage = Stage()
    first = Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, first, [0])
    stage.offset_fetch(0.2, first, {0: 0})
    for second in range(well):
        base, end = 5 * second, 5 * (second + 1)
        stage.produce(second + 0.3, 0, base, 5)
        stage.fetch(second + 0.5, first, (0, base, end, records(base, 5)))
        stage.commit(second + 0.7, first, {0: end})
        stage.heartbeat(second + 0.8, first)
    stage.leave(well + 0.1, first)
    stage.commit(well + 0.5, Client("offset-tool", GROUP, 43_000, host="10.0.0.7"), {0: 20})
    end, second_one = 5 * well, Client("worker", GROUP, 42_100, "worker-2", 2)
    stage.join(well + 1.1, second_one, [0])
    stage.offset_fetch(well + 1.2, second_one, {0: 20})
    for second in range(after):
        base = 20 + 5 * second
        at = well + 2 + second
        stage.fetch(at + 0.5, second_one, (0, base, end, records(base, 5)))
        stage.commit(at + 0.7, second_one, {0: base + 5})
        stage.heartbeat(at + 0.8, second_one)
    return stage
