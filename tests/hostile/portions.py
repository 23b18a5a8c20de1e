"""Do 10^8 mutated frames find a fault? ``python -m tests.hostile.portions --frames 100000000 --results FILE``.

Frames are read in portions (tests.hostile.portion), each a process of its own, each reported as one line of JSON in the
results. Called again with the same file it continues where it was: a portion that is there is not read again, unless
the decoder has changed since. ``--only N`` reads one portion again. Exit code 1 if any portion found a fault; the
frames are then in files beside the results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.brokers.cache import CACHE
from tests.hostile.blocks import BLOCK
from tests.hostile.portion import CRASH, DIFFERENCE, LEAK, Portion
from tests.paths import ROOT

STUCK_S = 300
"""Without a block finished in this time a portion is taken to be in an endless loop."""

_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(slots=True)
class _Running:
    number: int
    process: BaseProcess
    block: Any
    seen: int = -1
    seen_at: float = 0.0

    def is_stuck(self) -> bool:
        """Whether it has been at the same block for too long."""
        if self.block.value != self.seen:
            self.seen, self.seen_at = self.block.value, time.monotonic()
        return time.monotonic() - self.seen_at > STUCK_S


def main(arguments: list[str] | None = None) -> int:
    """Read the portions that are not read yet."""
    options = _options(arguments)
    if options.portion % BLOCK:
        raise SystemExit(f"--portion must be a multiple of {BLOCK}")
    decoder = fingerprint()
    wanted = [options.only] if options.only is not None else range(-(-options.frames // options.portion))
    left = [number for number in wanted if number not in _done(options, decoder) or options.only is not None]
    print(f"{len(left)} of {len(wanted)} portions of {options.portion:,} frames, decoder {decoder}", flush=True)
    running: list[_Running] = []
    while left or running:
        while left and len(running) < options.jobs:
            running.append(_started(left.pop(0), options, decoder))
        time.sleep(0.5)
        for one in list(running):
            if one.process.is_alive() and not one.is_stuck():
                continue
            running.remove(one)
            if one.process.is_alive() or one.process.exitcode:
                _record_death(one, options, decoder)
    results = list(_results(options.results))
    faults = {sort: sum(line[sort] for line in results) for sort in (CRASH, DIFFERENCE, LEAK)}
    frames, cpu = sum(line["frames"] for line in results), sum(line["cpu_seconds"] for line in results)
    print(f"{frames:,} frames in all, {1e6 * cpu / max(frames, 1):.0f} µs of CPU time each: {faults}")
    return int(any(faults.values()))


def fingerprint() -> str:
    """Of the code that is tested, and of what makes the frames."""
    files = [
        *sorted((ROOT / "decoder").rglob("*.py")),
        *(Path(__file__).parent / f"{n}.py" for n in ("blocks", "portion")),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.portions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--portion", type=int, default=100_000, help="frames of a portion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="portions at a time")
    parser.add_argument("--only", type=int, help="number of one portion, read again")
    parser.add_argument("--results", type=Path, default=CACHE / "portions" / "results.jsonl")
    return parser.parse_args(arguments)


def _results(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line)


def _done(options: argparse.Namespace, decoder: str) -> set[int]:
    same = (options.seed, options.portion, decoder)
    lines = _results(options.results)
    return {line["number"] for line in lines if (line["seed"], line["portion"], line["decoder"]) == same}


def _started(number: int, options: argparse.Namespace, decoder: str) -> _Running:
    block = _CONTEXT.RawValue("q", -1)
    arguments = (number, options.seed, options.portion, options.results, decoder, block)
    process = _CONTEXT.Process(target=_work, args=arguments, daemon=True)
    process.start()
    return _Running(number, process, block, seen_at=time.monotonic())


def _work(number: int, seed: int, count: int, results: Path, decoder: str, block: Any) -> None:
    portion, begun, cpu = Portion(seed, number, _faults(results)), time.monotonic(), time.process_time()

    def on_block(index: int) -> None:
        block.value = index

    portion.run(count, on_block)
    line = {
        "number": number, "seed": seed, "portion": count, "decoder": decoder, "frames": portion.frames,
        "bytes": portion.bytes, "seconds": round(time.monotonic() - begun, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        **{sort: portion.found[sort] for sort in (CRASH, DIFFERENCE, LEAK)},
        "by_kernel": dict(portion.by_kernel), "statuses": dict(portion.statuses),
        "stages": {name: round(spent, 1) for name, spent in portion.stage_s.items()},
    }  # fmt: skip
    _append(results, line)


def _record_death(one: _Running, options: argparse.Namespace, decoder: str) -> None:
    """A portion whose process died, or hangs, is a crash in the block that it was at, whose number gives its frames."""
    why = "hangs" if one.process.is_alive() else f"exit code {one.process.exitcode}"
    one.process.kill()
    one.process.join()
    _append(options.results, {
        "number": one.number, "seed": options.seed, "portion": options.portion, "decoder": decoder, "frames": 0,
        "bytes": 0, "seconds": 0.0, "cpu_seconds": 0.0, CRASH: 1, DIFFERENCE: 0, LEAK: 0, "block": one.block.value,
        "why": why,
    })  # fmt: skip
    print(f"portion {one.number}: {why} in block {one.block.value}", flush=True)


def _append(results: Path, line: dict[str, Any]) -> None:
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _faults(results: Path) -> Path:
    return results.with_suffix(".faults")


if __name__ == "__main__":
    raise SystemExit(main())
