"""A group whose coordinator states an older offset than the last one that it accepted."""

from __future__ import annotations

from tests.pipeline.analysis.rules.kafka.positions.stage import DELETE_GROUPS, OFFSET_DELETE, Client, Stage, records

GROUP = "orders-app"
BACK = 60
"""Second in which a second process comes, and finds its commit."""


def restarted(
    *, stated: int = 60, commits: int = 5, seconds: int = 120, skips: int = 0, set_back: bool = False,
    deletes: int | None = None, asked_before: bool = False, under_way: bool = False, monitor: bool = False,
    loses: int = 1,
) -> Stage:  # fmt: skip
    """A worker commits each 5 s; the next one finds ``stated`` as its commit, where 180 was accepted last.

    Args:
        commits: each how many seconds the second worker commits; 0: never.
        skips: from where it reads on, beyond ``stated``, records.
        set_back: whether a tool commits ``stated`` before.
        deletes: an api that deletes the group or its offsets before.
        asked_before: whether the answer was asked for before the last commit was answered.
        under_way: whether a tool that commits ``stated`` sends that before the answer is given, and is answered later.
        monitor: whether a tool asks each 10 s, and no second worker comes.
        loses: of how many partitions; of the others the last commit is stated.
    """
    stage, worker = Stage(), Client("worker", GROUP, 42_000, "worker-1")
    tool = Client("tool", GROUP, 44_000, host="10.0.0.8")
    everywhere = range(3)
    stage.join(0.1, worker, everywhere)
    stage.offset_fetch(0.2, worker, dict.fromkeys(everywhere, 0))
    at = dict.fromkeys(everywhere, 0)
    for second in range(seconds):
        end = 3 * (second + 1)
        for partition in everywhere:
            stage.produce(second + 0.3 + partition / 50, partition, end - 3, 3)
        answer = {number: stated if number < loses else 180 for number in everywhere}
        if second == BACK and set_back:
            stage.commit(second + 0.02, Client("tool", GROUP, 44_000, host="10.0.0.8", generation=-1), answer)
        if second == BACK and deletes == OFFSET_DELETE:
            stage.say(second + 0.02, tool, OFFSET_DELETE, {"groupId": GROUP, "topics": []}, {"errorCode": 0})
        if second == BACK and deletes == DELETE_GROUPS:
            done = {"results": [{"groupId": GROUP, "errorCode": 0}]}
            stage.say(second + 0.02, tool, DELETE_GROUPS, {"groupsNames": [GROUP]}, done)
        if second == BACK and not monitor:
            stage.leave(second + 0.05, worker)
            worker = Client("worker", GROUP, 42_001, "worker-2", generation=2)
            stage.join(second + 0.1, worker, everywhere)
            stage.offset_fetch(second + 0.2, worker, answer)
            if under_way:
                setter = Client("tool", GROUP, 44_000, host="10.0.0.8", generation=-1)
                stage.commit(second + 0.2005, setter, {0: stated})
            at = {number: offset + skips for number, offset in answer.items()}
        if second >= BACK and monitor and second % 10 == 0:
            stage.offset_fetch(second + 0.2, tool, answer)
        stage.fetch(second + 0.5, worker, *((n, at[n], end, records(at[n], end - at[n])) for n in everywhere))
        at = dict.fromkeys(everywhere, end)
        if second % 5 == 4 and second < BACK:
            stage.commit(second + 0.7, worker, dict.fromkeys(everywhere, end))
            if asked_before and second == BACK - 1:
                stage.offset_fetch(second + 0.7, tool, dict.fromkeys(everywhere, end - 15))
        elif commits and second % commits == commits - 1 and second >= BACK:
            stage.commit(second + 0.7, worker, dict.fromkeys(everywhere, end))
        stage.heartbeat(second + 0.8, worker)
    return stage
