"""A member that leaves one of its partitions out of its commits, beside another member of the group."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "payments"
ELSEWHERE = Client("app", GROUP, 42_001, "app-b", host="10.0.0.6")


def left_out(other: Client = ELSEWHERE, seconds: int = 180, *, fetches: bool = False) -> Stage:
    """A member commits only one of the two partitions that it holds, from the first minute on.

    Args:
        other: the member that holds the third partition.
        seconds: how long it lasts.
        fetches: whether the first member still fetches what it leaves out.
    """
    stage, first = Stage(), Client("app", GROUP, 42_001, "app-a")
    held = {first: (0, 1), other: (2,)}
    for offset, (member, some) in enumerate(held.items()):
        stage.join(0.1 + offset / 50, member, some)
    for at in range(seconds):
        end = 2 * (at + 1)
        for partition in range(3):
            stage.produce(at + 0.2 + partition / 50, partition, end - 2, 2)
        for member, some in held.items():
            goes_on = [n for n in some if n or at < 60]
            read = some if fetches else goes_on
            stage.fetch(at + 0.4, member, *((n, end - 2, end, records(end - 2, 2)) for n in read))
            stage.commit(at + 0.6, member, dict.fromkeys(goes_on, end))
            stage.heartbeat(at + 0.8, member)
    return stage
