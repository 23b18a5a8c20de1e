"""What becomes of each recording when it is twisted; ``python -m tests.captures.connections.outcomes`` writes the table
of docs/lab-book/connections.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.analysis.rules.run import finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.tables import CONNECTIONS
from tests.captures.connections.record import HERE
from tests.captures.connections.states import Row, counted
from tests.captures.connections.stories import STORIES
from tests.captures.connections.story import Pair, Story
from tests.captures.connections.twisted import TWISTS, Twist
from tests.captures.variants import pcap_of
from tests.paths import ROOT

OF_TCP = tuple(story for story in STORIES if not (story.has_icmp or story.also_at))
"""Recordings that can be twisted."""
PAGE = ROOT / "docs" / "lab-book" / "connections.md"
_HEAD = "| input | found as recorded | found in part | unknown | healthy: above info |\n|---|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found in a twisted recording.

    Attributes:
        loud: rules and subjects above info, without what is stated of the capture itself.
        expected: those of the recording as it is.
        rows: of ``silver.connections``, without copies.
    """

    loud: frozenset[Pair]
    expected: frozenset[Pair]
    rows: Sequence[Row] = ()

    @property
    def claims(self) -> set[Pair]:
        """What is found beside the recording's own findings."""
        return {(rule, what) for rule, what in self.loud - self.expected if not self._is_seen_by_half(rule, what)}

    def _is_seen_by_half(self, rule: str, what: str) -> bool:
        """Whether SYNs that nothing answers are what is left of a cause when the server's packets are missing."""
        server, _, shape = what.partition("/")
        wider = {(rule, f"{server}/{one}") for one in ("one-way", "away", "path", "unaccepted")}
        return shape == "unanswered" and not wider.isdisjoint(self.expected)

    @property
    def kept(self) -> str:
        """How much of the recording's own findings is left."""
        left = self.loud & self.expected
        return "all" if left == self.expected else "some" if left else "none"


def outcome(path: Path, story: Story) -> Outcome:
    """What is found in a twisted recording. That the capture holds one direction only is no claim about a client."""
    found = diagnose(read_inputs([str(path)]), StreamSettings())
    loud = {
        (row["rule"], row["subject"])
        for row in finding_rows(found.findings)
        if row["severity"] != "info" and row["rule"] != "capture_loss"
    }
    rows = counted(found.tables[CONNECTIONS.full_name].to_pylist())
    return Outcome(frozenset(loud), frozenset(story.named(story.findings)), rows)


@cache
def as_recorded(story: Story) -> Outcome:
    """What is found in the recording as it is."""
    return outcome(story.capture(HERE), story)


def make(story: Story, twist: Twist, folder: Path) -> Path:
    """The twisted recording."""
    path = folder / "twisted.pcap"
    path.write_bytes(twist.make(pcap_of(story.capture(HERE))))
    return path


def _row(twist: Twist, folder: Path) -> str:
    kept: Counter[str] = Counter()
    loud = 0
    for story in OF_TCP:
        found = outcome(make(story, twist, folder), story)
        if story.findings:
            kept[found.kept] += 1
        else:
            loud += len(found.loud)
    return f"| {twist.name} | {kept['all']} | {kept['some']} | {kept['none']} | {loud} |\n"


def table() -> str:
    """The table of docs/lab-book/connections.md: of each twist in how many sick recordings what is found."""
    with TemporaryDirectory() as folder:
        return _HEAD + "".join(_row(twist, Path(folder)) for twist in TWISTS)


def _write() -> None:
    before, _, rest = PAGE.read_text().partition(_HEAD)
    after = rest[rest.index("\n\n") :] if "\n\n" in rest else "\n"
    PAGE.write_text(before + table().rstrip("\n") + after)


if __name__ == "__main__":
    _write()
