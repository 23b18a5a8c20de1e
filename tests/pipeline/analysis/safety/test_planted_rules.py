"""A planted fault in each family of rules costs its own findings alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.analysis.derive import Derived, derive, findings_of
from pipeline.analysis.rules import rule, run
from pipeline.analysis.rules.run import Found
from pipeline.analysis.safety.guard import noting
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded
from pipeline.embedded.inputs import read_inputs
from tests.paths import CAPTURES
from tests.pipeline.analysis.safety.test_guard import CANARY, fails

SETTINGS = StreamSettings()
FAMILIES = {", ".join(one.name for one in family.rules): family for family in rule.families()}


@pytest.fixture(scope="module")
def derived() -> Derived:
    landed = read_inputs([str(CAPTURES / "stuck_commit.pcap"), str(CAPTURES / "mongodb" / "troubled_mongodb.pcap")])
    return derive(decoded(landed.frames), landed.gaps, SETTINGS)


@pytest.fixture(scope="module")
def whole(derived: Derived) -> Found:
    return findings_of(derived, SETTINGS.findings)


@pytest.mark.parametrize("names", sorted(FAMILIES))
def test_a_family_of_rules_that_fails_costs_its_own_findings(
    names: str, derived: Derived, whole: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tuple(replace(one, find=fails) if one is FAMILIES[names] else one for one in rule.families())
    monkeypatch.setattr(run, "families", lambda: broken)
    with noting() as noted:
        found = findings_of(derived, SETTINGS.findings)
    (error,) = noted.errors
    assert (error.step, error.error) == (f"rule {names}", "PlantedError")
    assert CANARY not in str(error)
    lost = set(names.split(", "))
    assert found.failed == lost
    kept = [one.finding_id for one in whole.findings if one.rule not in lost]
    assert [one.finding_id for one in found.findings] == kept
