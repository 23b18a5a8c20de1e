"""Texts that incidents of refused requests share."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.analysis.codes.advice import fix_of, now_of
from pipeline.analysis.codes.kafka.answers import kafka_facts
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.case.case import Case, arg, begun
from pipeline.analysis.rules.case.entities import TOPIC, TRANSACTION


def codes_of(case: Case) -> tuple[CodeFacts, ...]:
    """The facts of the errors that the root's findings name, with the names that are known."""
    names = {
        "group": _only(case.groups),
        "topic": _only(_named(case, TOPIC)),
        "transactional_id": _only(_named(case, TRANSACTION)),
    }
    return kafka_facts(_answers(case), **{name: value for name, value in names.items() if value})


def _answers(case: Case) -> Iterable[tuple[str, str]]:
    """Apis and errors; of a finding that does not state the apis its errors alone."""
    for one in case.bundle.findings:
        stated = one.details.get("answers") or [("", kind) for kind in one.details.get("kinds", ())]
        yield from ((str(api), str(error)) for api, error in stated)


def now(case: Case) -> str:
    """What to do at once about these errors."""
    return begun(now_of(codes_of(case)))


def fix(case: Case) -> str:
    """What prevents these errors."""
    return begun(fix_of(codes_of(case)))


def _only(names: Iterable[str]) -> str:
    """The name that is meant, if there is but one."""
    found = sorted(set(names))
    return arg(found[0]) if len(found) == 1 else ""


def _named(case: Case, kind: str) -> list[str]:
    return [entity[-1] for node in case.tree.nodes for entity in node.bundle.named.get(kind, ())]
