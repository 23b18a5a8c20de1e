"""Groups that read on without commits, start over each time, or do not read what they hold."""

from __future__ import annotations

from dataclasses import replace

from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage, records

GROUP = "orders-app"


def reads_on(*, stated: int = -1, seconds: int = 150, commits: tuple[int, ...] = (0,), steps: bool = True) -> Stage:
    """A member reads two partitions, and commits some of them."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0, 1])
    stage.offset_fetch(0.2, worker, {0: 0, 1: stated})
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        for partition in (0, 1):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        at = base if steps else 0
        stage.fetch(second + 0.5, worker, (0, base, end, records(base, 3)), (1, at, end, records(at, 3)))
        if commits and second % 5 == 4:
            stage.commit(second + 0.7, worker, dict.fromkeys(commits, end))
        stage.heartbeat(second + 0.8, worker)
    return stage


def out_of_range(*, each_time: bool = False, back: bool = False) -> Stage:
    """After 30 s one of two partitions is out of range."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0, 1])
    for second in range(120):
        base, end = 3 * second, 3 * (second + 1)
        for partition in (0, 1):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        parts = [(0, base, end, records(base, 3))]
        errors = {}
        if second < 30 or (back and second > 31):
            parts.append((1, base, end, records(base, 3)))
        elif second == 30 or each_time:
            parts.append((1, 90, end, b""))
            errors = {1: 1}
        stage.fetch(second + 0.5, worker, *parts, errors=errors)
        if second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: end, 1: min(end, 90)} if second < 30 else {0: end})
    return stage


def owned(*, fetched: bool = False, seconds: int = 120) -> Stage:
    """A member holds two partitions, and fetches one of them."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0, 1])
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        for partition in (0, 1):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        parts = [(number, base, end, records(base, 3)) for number in ((0, 1) if fetched else (0,))]
        stage.fetch(second + 0.5, worker, *parts)
        if second % 5 == 4:
            stage.commit(second + 0.7, worker, {0: end, 1: end} if fetched else {0: end})
        stage.heartbeat(second + 0.8, worker)
    return stage


def never_commits(*, starts: int = 4, commits: bool = False) -> Stage:
    """A job that is started again and again."""
    stage = Stage()
    for start in range(starts):
        worker = Client("job", "report", 43_000 + start, f"job-{start}", generation=start + 1)
        begin = 30 * start
        stage.join(begin + 0.1, worker, [0])
        stage.offset_fetch(begin + 0.2, worker, {0: 30 * start if commits and start else -1})
        at = 30 * start if commits else 0
        for second in range(begin, begin + 20):
            stage.produce(second + 0.3, 0, 30 * start + second - begin, 1)
            end = 30 * start + second - begin + 1
            stage.fetch(second + 0.5, worker, (0, at, end, records(at, end - at)))
            at = end
        if commits:
            stage.commit(begin + 20.5, worker, {0: 30 * (start + 1)})
        stage.leave(begin + 21, worker)
    return stage


def refused_once(*, again: bool = False) -> Stage:
    """A client without membership asks for its offsets, and is refused."""
    stage, worker = Stage(), Client("worker", GROUP, 42_000)
    stage.offset_fetch(0.2, worker, {0: 0}, error=16)
    if again:
        stage.offset_fetch(0.7, worker, {0: 0})
    for second in range(120):
        stage.produce(second + 0.3, 0, 3 * second, 3)
        if again:
            stage.fetch(second + 0.5, worker, (0, 3 * second, 3 * second + 3, records(3 * second, 3)))
        stage.heartbeat(second + 0.6, worker)
    return stage


def commits_nothing(
    *, stated: int = -1, begins: int | None = None, ahead: int = 0, seconds: int = 330, member: bool = True,
    asks: bool = True, commits_at: int | None = None, group: str = GROUP,
) -> Stage:  # fmt: skip
    """A group reads a partition on, and commits nothing.

    Args:
        stated: what OffsetFetch answers.
        begins: from where it reads; None: from there, or from the start.
        ahead: records that are there before.
        member: whether it joins and sends heartbeats.
        asks: whether its OffsetFetch is seen.
        commits_at: second of one commit.
    """
    stage, worker = Stage(), Client("worker", group, 42_000, "worker-1" if member else "")
    if ahead:
        stage.produce(0.05, 0, 0, ahead)
    if member:
        stage.join(0.1, worker, [0])
    if asks:
        stage.offset_fetch(0.2, worker, {0: stated})
    at = max(stated, 0) if begins is None else begins
    for second in range(seconds):
        end = ahead + second + 1
        stage.produce(second + 0.3, 0, end - 1, 1)
        stage.fetch(second + 0.5, worker, (0, at, end, records(at, end - at)))
        at = end
        if second == commits_at:
            stage.commit(second + 0.7, worker, {0: end})
        if member:
            stage.heartbeat(second + 0.8, worker)
    return stage


def since_refused(
    *, request: str = "commit", seconds: int = 120, others: bool = True, again: bool = False, joins: bool = False,
    beats: bool = True,
) -> Stage:  # fmt: skip
    """After 30 s a request about the second of two partitions is refused, and it is not fetched since.

    Args:
        request: ``commit``, ``part`` or ``whole``: OffsetFetch of that partition or as a whole, after a rebalance.
        others: whether the member fetches the first one on.
        again: whether it fetches the second one on as well.
        joins: whether it joins again afterwards.
        beats: whether its heartbeats continue.
    """
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    stage.join(0.1, worker, [0, 1])
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        is_ill = second > 30
        for partition in (0, 1):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
        read = [n for n in (0, 1) if not is_ill or (again if n else others)]
        if read:
            stage.fetch(second + 0.5, worker, *((n, base, end, records(base, 3)) for n in read))
        if second % 5 == 4 and read:
            stage.commit(second + 0.7, worker, dict.fromkeys(read, end))
        if second == 30 and request == "commit":
            stage.commit(30.75, worker, {1: end}, error=25)
        elif second == 30:
            worker = Client("worker", GROUP, 42_000, "worker-1", generation=2)
            stage.join(30.72, worker, [0, 1])
            refused = {"error": 14} if request == "whole" else {"errors": {1: 88}}
            stage.offset_fetch(30.76, worker, {0: end, 1: end}, **refused)  # type: ignore[arg-type]
        if second == 60 and joins:
            stage.join(60.72, worker, [0, 1])
        if beats or not is_ill:
            stage.heartbeat(second + 0.8, worker)
    return stage


def rolled_out(*, begins: float | None = 20, seconds: int = 200) -> Stage:
    """An old process commits each 5 s; a new one, there when the capture begins, reads on and has not committed yet.

    Args:
        begins: when a second new process enters; None: never.
        seconds: how long the capture is.
    """
    stage, old = Stage(), Client("old", GROUP, 42_000, "old-1")
    new, next_one = Client("new", GROUP, 42_001, "new-1"), Client("new", GROUP, 42_002, "new-2", host="10.0.0.6")
    for second in range(seconds):
        base, end = 3 * second, 3 * (second + 1)
        for partition, member in ((0, old), (1, new)):
            stage.produce(second + 0.3 + partition / 50, partition, base, 3)
            stage.fetch(second + 0.5, member, (partition, base, end, records(base, 3)))
            stage.heartbeat(second + 0.8, member)
        if begins is not None and second == begins:
            stage.join(second + 0.1, next_one, [])
        if begins is not None and second > begins:
            stage.heartbeat(second + 0.9, next_one)
        if second % 5 == 4:
            stage.commit(second + 0.7, old, {0: end})
    return stage


def unassigned(*, seconds: int = 400, later: tuple[int, ...] = (0,), fetches: tuple[int, ...] = (0,)) -> Stage:
    """A member holds two partitions; from 30 s on it is given `later`, and fetches `fetches`."""
    stage, first = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    second = replace(first, generation=2)
    stage.join(0.1, first, [0, 1])
    for at in range(0, seconds, 5):
        who, own = (first, (0, 1)) if at < 30 else (second, fetches)
        if at == 30:
            stage.join(at + 0.1, second, later)
        for partition in (0, 1):
            stage.produce(at + 0.3 + partition / 50, partition, 3 * at, 15)
        stage.fetch(at + 0.5, who, *((number, 3 * at, 3 * at + 15, records(3 * at, 15)) for number in own))
        stage.commit(at + 0.7, who, dict.fromkeys(own, 3 * at + 15))
        stage.heartbeat(at + 0.8, who)
    return stage
