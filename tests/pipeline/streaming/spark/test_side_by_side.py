"""Steps at once: what they return, which error comes out, and that Spark knows to which query they belong."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from pyspark.sql import SparkSession

from pipeline.streaming.spark.side_by_side import side_by_side

pytestmark = pytest.mark.spark
_AT_MOST_S = 60
"""How long a step waits for one that never comes, seconds."""


@pytest.mark.usefixtures("spark")
def test_results_come_in_the_order_of_the_steps() -> None:
    assert side_by_side(*(partial(pow, number, 2) for number in range(20))) == [number**2 for number in range(20)]
    assert side_by_side() == []


@pytest.mark.usefixtures("spark")
def test_steps_run_at_once() -> None:
    both = threading.Barrier(2)
    assert sorted(side_by_side(*[partial(both.wait, _AT_MOST_S)] * 2)) == [0, 1]


@pytest.mark.usefixtures("spark")
def test_an_error_comes_out_when_the_other_steps_have_ended() -> None:
    failing, ended = threading.Event(), []

    def fail() -> None:
        failing.set()
        raise ValueError("one")

    def go_on() -> None:
        failing.wait(_AT_MOST_S)
        ended.append("continued")

    with pytest.raises(ValueError, match="one"):
        side_by_side(go_on, fail)
    assert ended == ["continued"]


@pytest.mark.usefixtures("spark")
def test_after_an_error_no_step_is_begun() -> None:
    begun: list[str] = []
    with pytest.raises(ZeroDivisionError):
        side_by_side(partial(divmod, 1, 0), partial(begun.append, "another"), at_once=1)
    assert not begun


def test_spark_knows_to_which_query_a_step_belongs(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty("wirelake.test", "this one")
    try:
        ours = partial(context.getLocalProperty, "wirelake.test")
        assert side_by_side(ours, ours) == ["this one", "this one"]
    finally:
        context.setLocalProperty("wirelake.test", None)
