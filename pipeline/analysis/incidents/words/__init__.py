"""How is each incident told? By the rule of its root; of rules that are not named here by their findings' own words."""

from __future__ import annotations

from pipeline.analysis.incidents.words.commits import COMMITS
from pipeline.analysis.incidents.words.members import MEMBERS
from pipeline.analysis.incidents.words.model import Words
from pipeline.analysis.incidents.words.others import OTHERS

WORDS: dict[str, Words] = {**COMMITS, **MEMBERS, **OTHERS}
"""By rule."""
