"""Members that hold partitions and fetch nothing at all, while another member of the group gets on."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP


def silent(
    *, seconds: int = 420, other: bool = True, reads_from: int | None = None, refused_at: int | None = None,
    beats: bool = True, name: str = "worker", restores: str | None = None,
) -> Stage:  # fmt: skip
    """A member holds orders-0 and orders-1; another one, on a host of its own, reads orders-2.

    Args:
        other: whether that one is there.
        reads_from: from which second on the member reads; None: never.
        refused_at: until when it reads, and is out of range then; None: it never reads.
        restores: the client id of another client of its host, which fetches.
    """
    stage, worker = Stage(), Client(name, GROUP, 42_000, "worker-1")
    second_one = Client("second", GROUP, 42_001, "second-1", host="10.0.0.6")
    stage.join(0.1, worker, [0, 1])
    if other:
        stage.join(0.15, second_one, [2])
    for second in range(0, seconds, 3):
        base, end = second, second + 3
        for partition in range(3):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        is_reading = (refused_at is not None and second < refused_at) or (
            reads_from is not None and second >= reads_from
        )
        if is_reading:
            stage.fetch(second + 0.5, worker, *((number, base, end, records(base, 3)) for number in (0, 1)))
        elif second == refused_at:
            stage.fetch(second + 0.5, worker, (0, base, end, b""), (1, base, end, b""), errors={0: 1, 1: 1})
        if is_reading and second % 6 == 3:
            stage.commit(second + 0.7, worker, {0: end, 1: end})
        if restores:
            stage.fetch(second + 0.55, Client(restores, "", 42_003), (7, 0, 0, b""))
        if beats:
            stage.heartbeat(second + 0.8, worker)
        if other:
            stage.fetch(second + 0.6, second_one, (2, base, end, records(base, 3)))
            stage.heartbeat(second + 0.85, second_one)
            if second % 6 == 3:
                stage.commit(second + 0.75, second_one, {2: end})
    return stage
