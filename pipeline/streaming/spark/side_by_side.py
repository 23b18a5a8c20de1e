"""Runs steps at once that do not need each other: Spark plans a query in one thread, so two keep two cores busy."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from pyspark import InheritableThread

_AT_ONCE = 3
"""More would only wait for each other: a step is planned on one core and runs on all."""

T = TypeVar("T")


def side_by_side(*steps: Callable[[], T], at_once: int = _AT_ONCE) -> list[T]:
    """Run steps in threads that share Spark's local properties (query, batch), and return when all have ended.

    Args:
        steps: what to run; they are begun in this order.
        at_once: how many of them.

    Returns:
        What the steps returned, in their order.

    Raises:
        Exception: that of the first step (in their order) that failed. Steps not yet begun by then are not begun.
    """
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}
    waiting = iter(enumerate(steps))  # taking the next of it is atomic

    context = copy_context()  # a failure in a step is noted where those of the caller are

    def work() -> None:
        for number, step in waiting:
            try:
                results[number] = context.copy().run(step)
            except BaseException as error:
                errors[number] = error
            if errors:
                return

    threads = [InheritableThread(target=work, daemon=True) for _ in range(min(at_once, len(steps)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(steps))]
