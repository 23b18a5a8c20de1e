"""Measures how fast a frame is decoded, beside other decoders on the same frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks import java_clients, traffic, tshark
from benchmarks.apart import apart
from benchmarks.candidates import CONSOLE, Candidate, measure, show
from benchmarks.corpus import CorpusFrame, describe, recorded, samples

ROUNDS = 5
FRAMES = 60_000
"""Of the minute of load."""


def main() -> None:
    """A minute of load, then the sample captures: each candidate on what all understand; then beside tshark."""
    load = recorded([traffic.capture()])
    candidates = apart("benchmarks.wirelake", "frame_readers") + peers("frame_readers")
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


def peers(readers: str) -> list[Candidate[Any]]:
    """The candidates that are installed; of the others it prints how to get them."""
    found: list[Candidate[Any]] = []
    for module in ("kafka_python", "kio_reader"):
        try:
            found += apart(f"benchmarks.{module}", readers)
        except ImportError as error:
            package = str(error.name).partition(".")[0]
            CONSOLE.print(f"{package} is not installed (uv pip install --group bench)")
    if lacking := java_clients.lacks():
        CONSOLE.print(f"not installed: {lacking}")
        return found
    return found + list(getattr(java_clients, readers)())
