"""The form of the table of claims: a claim, and the evidence that a capture must hold for it.

Evidence is stated as a condition on rows of ``silver.exchanges``, so that a reader can select it with SQL and a test
can remove it. It is of two kinds: exchanges that must have been captured, and connections on which something did not
happen. Nothing follows from silence where bytes were lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Half = Literal["exchange", "request", "response"]


@dataclass(frozen=True, slots=True)
class Ground:
    """Evidence that a claim rests on.

    Attributes:
        words: what must be in the capture, as the end of "needs …".
        where: a condition in SQL on ``silver.exchanges``, and on ``application`` and ``command`` of
            ``silver.mongo_commands``, which selects exchanges that can hold it.
        names: kinds of names (pipeline.analysis.rules.case.entities); the exchange must state one of the finding's.
        half: the half of the exchange that states it.
        is_silence: whether the claim rests on what did not happen: the selected exchanges show the connections on which
            it would have been seen.
        least: how many exchanges are needed.
    """

    words: str
    where: str
    names: tuple[str, ...] = ()
    half: Half = "exchange"
    is_silence: bool = False
    least: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim.

    Attributes:
        says: a regular expression that finds the claim in a summary, a headline, or the reasons for its certainty.
        words: the claim without names and numbers.
        grounds: the evidence that it needs, all of it.
        rule: the rule that makes it, where it is read from the table of claims.
    """

    says: str
    words: str
    grounds: tuple[Ground, ...]
    rule: str = ""

    @property
    def rests_on_silence(self) -> bool:
        """Whether lost bytes can make it untrue."""
        return any(ground.is_silence for ground in self.grounds)


def seen(
    words: str, *apis: str, names: tuple[str, ...] = (), half: Half = "exchange", where: str = "", least: int = 1
) -> Ground:
    """Exchanges of some apis that must have been captured; none: of any api."""
    return Ground(words, _where(apis, where), names, half, least=least)


def silent(words: str, *apis: str, names: tuple[str, ...] = (), half: Half = "exchange", where: str = "") -> Ground:
    """Connections that must have been captured without loss, for something did not happen on them."""
    return Ground(words, _where(apis, where), names, half, is_silence=True)


def _where(apis: tuple[str, ...], further: str) -> str:
    of_apis = f"api_name IN ({', '.join(repr(api) for api in apis)})" if apis else ""
    return " AND ".join(part for part in (of_apis, further) if part) or "true"
