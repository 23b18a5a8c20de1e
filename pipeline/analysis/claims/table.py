"""What summaries, headlines and reasons of all rules state, and what each statement needs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pipeline.analysis.claims.model import Claim
from pipeline.analysis.rules.rule import all_rules, rule_named

WIDE = frozenset({"group", "server"})
"""Kinds of names whose clients an incident does not state in full: a loss of any connection of the cluster counts."""


def claims_of(rule: str) -> tuple[Claim, ...]:
    """The claims that a rule makes, with its name."""
    return tuple(replace(claim, rule=rule) for claim in rule_named(rule).claims)


@lru_cache(maxsize=1)
def all_claims() -> tuple[Claim, ...]:
    """Those of all rules."""
    return tuple(claim for rule in all_rules() for claim in claims_of(rule.name))


@lru_cache(maxsize=1)
def silent_rules() -> frozenset[str]:
    """Rules whose claims can be untrue if bytes were lost."""
    return frozenset(claim.rule for claim in all_claims() if claim.rests_on_silence)


@lru_cache(maxsize=1)
def wide_rules() -> frozenset[str]:
    """Those of them that rest on the silence of a group's or a broker's connections, whosever they are."""
    return frozenset(
        claim.rule
        for claim in all_claims()
        for ground in claim.grounds
        if ground.is_silence and not WIDE.isdisjoint(ground.names)
    )
