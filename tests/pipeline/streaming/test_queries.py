"""A query that rests ends at once when it must, and none begins after that."""

from __future__ import annotations

import threading
import time

import pytest

from pipeline.streaming.queries import Gate, GateClosedError


def test_whoever_rests_is_woken_when_no_batch_may_begin_any_more() -> None:
    gate, ended = Gate(), threading.Event()

    def work() -> None:
        gate.rest(time.monotonic() + 3600)
        ended.set()

    resting = threading.Thread(target=work, daemon=True)
    resting.start()
    assert not ended.wait(0.05)
    gate.close()
    assert ended.wait(60)
    with pytest.raises(GateClosedError), gate.batch():
        pytest.fail("a batch has begun")


def test_a_rest_that_is_over_is_none() -> None:
    gate, ended = Gate(), threading.Event()

    def work() -> None:
        gate.rest(time.monotonic() - 1)
        gate.rest(0.0)
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    assert ended.wait(60)


def test_closing_waits_for_batches_under_way() -> None:
    gate, begun, may_end, closed = Gate(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with gate.batch():
            begun.set()
            may_end.wait(60)

    def close() -> None:
        gate.close()
        closed.set()

    threading.Thread(target=work, daemon=True).start()
    assert begun.wait(60)
    threading.Thread(target=close, daemon=True).start()
    assert not closed.wait(0.05)
    may_end.set()
    assert closed.wait(60)
