"""What is left to do of troubles whose remedy sets a group's offsets, once they are over."""

from __future__ import annotations

import re

from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.rule import Rule

_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_SETS_OFFSETS = "--reset-offsets"


class OffsetRule(Rule, is_base=True):
    """A rule whose remedy may set a group to another offset.

    Once it is over no offset is set: the next time it is another one. Sentences that set one are left out then.
    """

    @classmethod
    def once_over(cls, case: Case, now: str) -> str:
        """The same without what sets offsets, if anything else is to be done."""
        kept = " ".join(sentence for sentence in _SENTENCE.split(now) if _SETS_OFFSETS not in sentence)
        return super().once_over(case, kept or now)
