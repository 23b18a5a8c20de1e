"""Readers that assign partitions to themselves, with a group or without one, and leave out one of them."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP, NAME = "sinks", "viewer"
SECOND = Client("second", "", 45_001, host="10.0.0.6")
LEFT = 2
"""The partition that is left out."""


def leaves_out(
    *, until: int = 40, group: str = "", seconds: int = 420, asks: bool = False, other: Client | None = None,
    written: bool = True, bounded: bool = False, name: str = NAME, restarts: bool = False, commits_on: bool = False,
) -> Stage:  # fmt: skip
    """A reader of three partitions.

    Args:
        until: the second from which on it leaves out the last one; 0: it never reads it.
        group: for which it commits what it reads; empty: it commits nothing.
        asks: whether it asks for the commits of all three at first.
        other: a client that reads the partition that is left out.
        written: whether records are written to it.
        bounded: whether it reads only what was there at first, and is behind.
        name: its client id.
        restarts: whether another process of its name comes when it leaves the partition out.
        commits_on: whether it continues committing the partition.
    """
    stage, reader = Stage(), Client(name, group, 45_000, generation=-1)
    if asks:
        stage.offset_fetch(0.1, reader, dict.fromkeys(range(3), 0))
    for second in range(0, seconds, 2):
        base, end = 3 * second, 3 * (second + 2)
        for partition in range(3):
            if written or partition != LEFT:
                stage.produce(second + 0.3 + partition / 50, partition, base, 6)
        own = [partition for partition in range(3) if partition != LEFT or second < until]
        if restarts and second == until:
            reader = Client(name, group, 45_010, generation=-1)
        ahead = 100 if bounded else 0
        stage.fetch(second + 0.5, reader, *((number, base, end + ahead, records(base, 6)) for number in own))
        if other is not None:
            stage.fetch(second + 0.6, other, (LEFT, base, end, records(base, 6)))
        if group and second % 10 == 8:
            stage.commit(second + 0.7, reader, dict.fromkeys([*own, LEFT] if commits_on else own, end))
    return stage
