"""A rule that finds more subjects than its traffic can honestly have keeps the worst, and says how many there were."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.analysis.rules.budget import BYTES_EACH, LEAST_KEPT, Budget
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.safety.guard import noting
from pipeline.analysis.tables import Tables


def finding(number: int, rule: str = "topic_recreated", severity: str = "warning") -> Finding:
    return Finding(
        rule=rule, severity=severity, subject=f"t{number:05}", state="ongoing", cluster="c", topic=None, partition=None,
        group_id=None, first_us=number, last_us=number, summary="", advice="", evidence=[], details={},
    )  # fmt: skip


def budget(size: int) -> Budget:
    sizes = pa.array([size, None], pa.int64())
    return Budget(Tables({"exchanges": pa.table({"request_size": sizes, "response_size": sizes})}))


def test_a_rule_keeps_the_worst_and_says_how_many_it_found() -> None:
    many = [finding(n, severity="critical" if n % 2 else "info") for n in reversed(range(2 * LEAST_KEPT))]
    few = [finding(n, "stuck_commit") for n in range(3)]
    some = budget(1)
    with noting() as noted:
        kept = some.kept([*many, *few])
    assert kept == [*(one for one in many if one.severity == "critical"), *few]
    assert some.over == {"topic_recreated"}
    (error,) = noted.errors
    assert (error.step, error.is_excess) == ("rule topic_recreated", True)
    assert error.place == f"it finds {2 * LEAST_KEPT:,} subjects, and keeps the worst {LEAST_KEPT:,}"


@pytest.mark.parametrize(("size", "most"), [(0, LEAST_KEPT), (BYTES_EACH * LEAST_KEPT, 2 * LEAST_KEPT)])
def test_larger_traffic_may_show_more(size: int, most: int) -> None:
    some = budget(size)
    with noting() as noted:
        assert len(some.kept(map(finding, range(most)))) == most
    assert not noted.errors
    assert not some.over
    with noting():
        assert len(some.kept(map(finding, range(most + 1)))) == most
    assert some.over == {"topic_recreated"}
