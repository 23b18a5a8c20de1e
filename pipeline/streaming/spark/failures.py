"""Failures of steps that Spark's workers note, on their way back to the driver.

They travel in an accumulator of Spark's, which counts a repeated task twice: failures are a set, so that this changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from pipeline.analysis.safety.guard import MOST_NOTED, InternalError, noting

Failures = tuple[InternalError, ...]


class _Union(AccumulatorParam[Failures]):  # type: ignore[misc]
    """Joins failures, each once."""

    def zero(self, value: Failures) -> Failures:
        return ()

    def addInPlace(self, value1: Failures, value2: Failures) -> Failures:  # noqa: N802 - Spark's name
        return tuple(dict.fromkeys((*value1, *value2)))[:MOST_NOTED]


_OF_CONTEXTS: dict[str, Accumulator[Failures]] = {}


def failures_of(spark: SparkSession) -> Accumulator[Failures]:
    """What workers of this session add their failures to; to be part of the functions that they run."""
    context = spark.sparkContext
    name = str(context.applicationId)
    if name not in _OF_CONTEXTS:
        _OF_CONTEXTS[name] = context.accumulator((), _Union())
    return _OF_CONTEXTS[name]


def taken_failures(spark: SparkSession) -> Failures:
    """The failures that workers have noted since this was asked last."""
    found = failures_of(spark)
    failures: Failures = found.value
    found.value = ()
    return failures


@contextmanager
def noting_in_worker(failures: Accumulator[Failures]) -> Iterator[None]:
    """Contain failures within the block, on a worker, and add them to those of the session."""
    with noting() as noted:
        yield
    if noted.errors:
        failures.add(noted.errors)
