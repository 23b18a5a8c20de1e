"""What rules state to follow from each other: rules that there are, and nothing causes itself."""

from __future__ import annotations

from graphlib import TopologicalSorter

from pipeline.analysis.rules import rule as registry
from pipeline.analysis.rules.case.entities import KINDS
from pipeline.analysis.rules.rule import all_rules, edges

ALONE = frozenset({"acks0_producer", "capture_loss", "mongo_cursor_leak", "other_protocol"})
"""Rules that neither cause nor follow from anything."""
_GATHERED = frozenset(vars(registry)[name] for name in vars(registry) if name.startswith("OF_"))


def test_links_name_rules_and_few_rules_have_none() -> None:
    names = {rule.name for rule in all_rules()}
    linked = {name for edge in edges() for name in (edge.cause, edge.effect)}
    assert names - linked == ALONE
    assert linked < names


def test_nothing_follows_from_itself() -> None:
    order: TopologicalSorter[str] = TopologicalSorter()
    for edge in edges():
        order.add(edge.effect, edge.cause)
    assert len(set(order.static_order())) == len(all_rules()) - len(ALONE)  # raises CycleError


def test_edges_ask_for_names_that_there_are_and_stand_once() -> None:
    assert all(edge.shares and set(edge.shares) <= set(KINDS) and edge.because for edge in edges())
    stated = [
        (one.name, effect, link.shares) for one in all_rules() for link in one.effects for effect in link.rules
    ] + [(cause, one.name, link.shares) for one in all_rules() for link in one.causes for cause in link.rules]
    assert len(set(stated)) == len(stated)


def test_rules_gather_by_what_there_is_and_name_kinds_of_subjects() -> None:
    assert {rule.gathered for rule in all_rules()} <= _GATHERED | {None}
    assert all(set(rule.subject) <= {*KINDS, None} and len(rule.subject) <= 2 for rule in all_rules())
