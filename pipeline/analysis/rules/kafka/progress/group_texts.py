"""Texts that incidents of groups that do not get on share."""

from __future__ import annotations

from pipeline.analysis.libraries import WHEN_REVOKED
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.texts import SEEN, WHY_IS_NOT, Say, advised
from pipeline.analysis.rules.kafka.positions import unread_texts

MEMBERS = "kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group"
REVOKED = f"Finish or drop a partition's work when it is revoked ({WHEN_REVOKED}), and commit only what is assigned"


def members(case: Case) -> str:
    """Who it is among them is not on the wire, unless the finding says so."""
    return case.who if case.callers else f"a member of group {case.group}"


def begun_advice(case: Case, part: str) -> str:
    """What the lead's advice says to do ``now``, or as a ``fix``, as a sentence."""
    return begun(advised(case, part))


def or_advised(part: str, text: str) -> Say:
    """A text that holds for all cases but those of a shape of their own, whose findings state what to do."""
    return lambda case: begun_advice(case, part) if case.details.get("shape") else text


def or_reads(text: str) -> Say:
    """What a case rests on."""
    return lambda case: shape_why(case) if case.details.get("shape") else text


def shape_why(case: Case) -> str:
    """What a case of a shape of its own rests on."""
    seen = f"{SEEN}{unread_texts.seen(case.details)}."
    return seen if case.details["shape"] == unread_texts.NEVER_COMMITS else f"{seen} {WHY_IS_NOT}"
