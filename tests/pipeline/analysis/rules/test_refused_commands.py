"""No code in the reply to a command of MongoDB is silent, but those by which applications learn what is there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.paths import ROOT
from tests.pipeline.analysis.rules.refused_commands import COMMANDS, pairs, silent

STEPS_S = (1, 10, 60, 310)


@pytest.mark.parametrize(
    ("step_s", "commands"),
    [
        pytest.param(20, ("insert", "saslContinue"), id="20"),
        pytest.param(310, ("getMore",), id="310"),
        *(pytest.param(step, COMMANDS, id=f"{step}-all", marks=pytest.mark.proof) for step in STEPS_S),
    ],
)
def test_no_code_of_any_command_is_silent(step_s: int, commands: Sequence[str]) -> None:
    """At the rhythm of a retry at once, of a back-off, and of a schedule: each five minutes and a little more."""
    assert [name for one in commands for name in silent([one], step_s)] == []


def test_what_is_health_is_documented() -> None:
    """Each code that is silent is on the page of the rule."""
    page = (ROOT / "docs" / "rules" / "mongo_command_failed.md").read_text()
    health = {pair.name.split()[1] for pair in pairs() if pair.is_health}
    assert sorted(name for name in health if name not in page) == []
    assert len(health) == 4
