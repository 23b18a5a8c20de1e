"""How fast is a frame decoded, beside others on the same frames?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from benchmarks import java_clients, traffic, tshark, wirelake
from benchmarks.candidates import CONSOLE, Candidate, measure, show
from benchmarks.corpus import CorpusFrame, describe, recorded, samples

ROUNDS = 5
FRAMES = 60_000
"""Of the minute of load."""

Item = TypeVar("Item")


def main() -> None:
    """A minute of load, then the sample captures: each candidate on what all understand; then beside tshark."""
    load = recorded([traffic.capture()])
    candidates = wirelake.FRAME_READERS + peers(_kafka_python, _kio, _java)
    side_by_side("A minute of load", candidates, load[len(load) // 4 :][:FRAMES])
    side_by_side("The sample captures", candidates, samples())
    CONSOLE.print("Java: the time of the decoding thread; its garbage collector and compiler are not in it.")
    tshark.main(load)


def side_by_side(title: str, candidates: Sequence[Candidate[CorpusFrame]], frames: Sequence[CorpusFrame]) -> None:
    """How many frames each candidate understands, and the time of all on what every one of them understands."""
    CONSOLE.print(f"\n{title}: {describe(frames)}")
    understood = [candidate.check(frames) for candidate in candidates]
    for candidate, marks in zip(candidates, understood, strict=True):
        CONSOLE.print(f"  {candidate.name} ({candidate.gives}) understands {sum(marks):,} of {len(frames):,}")
    common = [frame for frame, *marks in zip(frames, *understood, strict=True) if all(marks)]
    results = measure(candidates, [common] * len(candidates), ROUNDS)
    head = f"what all understand, over and over in each of {ROUNDS} rounds in turn, CPU time of one core"
    show(head, results, len(common), "frames")


def peers(*ways: Callable[[], list[Candidate[Item]]]) -> list[Candidate[Item]]:
    """The candidates that are installed; of the others it is said how to get them."""
    found: list[Candidate[Item]] = []
    for way in ways:
        try:
            found += way()
        except ImportError as error:
            CONSOLE.print(f"{error.name} is not installed (uv pip install --group bench)")
        except FileNotFoundError as error:
            CONSOLE.print(f"not installed: {error}")
    return found


def _kafka_python() -> list[Candidate[CorpusFrame]]:
    from benchmarks.kafka_python import frame_readers  # noqa: PLC0415  optional

    return frame_readers()


def _kio() -> list[Candidate[CorpusFrame]]:
    from benchmarks.kio_reader import frame_readers  # noqa: PLC0415  optional

    return frame_readers()


def _java() -> list[Candidate[CorpusFrame]]:
    if lacking := java_clients.lacks():
        raise FileNotFoundError(lacking)
    return java_clients.frame_readers()
