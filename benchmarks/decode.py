"""How fast is a frame decoded, beside others on the same frames?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from benchmarks import java_clients, tshark, wirelake
from benchmarks.candidates import CONSOLE, Candidate, measure, show
from benchmarks.corpus import CorpusFrame, describe, recorded

ROUNDS = 5
FRAMES = 100_000
"""Decoded in a round, by repeating the recorded ones."""

Item = TypeVar("Item")


def main() -> None:
    """Each candidate on all that it understands; all on what every one of them understands; beside tshark."""
    frames = recorded()
    candidates = wirelake.FRAME_READERS + peers(_kafka_python, _kio, _java)
    understood = [candidate.check(frames) for candidate in candidates]
    given = [[frame for frame, good in zip(frames, marks, strict=True) if good] for marks in understood]
    repeat = max(1, FRAMES // len(frames))
    head = f"recorded frames, {repeat} times over in each of {ROUNDS} rounds in turn, CPU time of one core"
    CONSOLE.print(f"\nDecode: {describe(frames)}")
    show(
        f"{head}; each on those that it understands", measure(candidates, given, repeat, ROUNDS), len(frames), "frames"
    )
    common = [frame for frame, *marks in zip(frames, *understood, strict=True) if all(marks)]
    CONSOLE.print(f"\nUnderstood by all: {describe(common)}")
    results = measure(candidates, [common] * len(candidates), repeat, ROUNDS)
    show(f"{head}; all on the same", results, len(common), "frames")
    CONSOLE.print("Java: the time of the decoding thread; its garbage collector and compiler are not in it.")
    tshark.main(frames)


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
