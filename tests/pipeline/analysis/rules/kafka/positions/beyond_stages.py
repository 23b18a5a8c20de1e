"""Groups whose commits are beyond the end of the log."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "orders-app"


def beyond(*, stated: int = 5000, starts: int = 3, refused: bool = True, reads_from: int = 0) -> Stage:
    """Each 30 s a start finds its commit beyond the end, and reads from elsewhere."""
    stage = Stage()
    stage.produce(0.05, 0, 0, 55)
    for start in range(starts):
        worker, begin = Client("worker", GROUP, 43_000 + start, f"worker-{start}", generation=start + 1), 30 * start
        stage.join(begin + 0.1, worker, [0])
        stage.offset_fetch(begin + 0.2, worker, {0: stated})
        if refused:
            stage.fetch(begin + 0.3, worker, (0, stated, -1, b""), errors={0: 1})
        at = reads_from
        for second in range(begin, begin + 20):
            stage.fetch(second + 0.5, worker, (0, at, 55, records(at, 55 - at) if at < 55 else b""))
            stage.heartbeat(second + 0.8, worker)
            at = 55
        stage.leave(begin + 21, worker)
    return stage


def commits_beyond(*, ahead: int = 5000, seconds: int = 60, heals: bool = False) -> Stage:
    """A member reads on, and commits far ahead of what it reads."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0])
    stage.offset_fetch(0.2, worker, {0: 0})
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        stage.produce(second + 0.3, 0, base, 3)
        stage.fetch(second + 0.5, worker, (0, base, end, records(base, 3)))
        if second % 5 == 4:
            is_well = heals and second > seconds // 2
            stage.commit(second + 0.7, worker, {0: end if is_well else end + ahead})
        stage.heartbeat(second + 0.8, worker)
    return stage
