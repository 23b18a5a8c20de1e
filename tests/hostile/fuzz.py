"""How long does the decoder stand hostile frames? ``python -m tests.hostile.fuzz --frames 10000000 --seed N``.

Good frames (every one of the sample captures, and a made one of every api, version and kind; MongoDB messages with
``--reader mongodb``) are changed at random
and decoded, in processes of their own. It ends with exit code 1 at the first frame that breaks an invariant
(``tests.hostile.invariants``), takes too long for its size, makes the memory grow or kills its process; the frame is
then in a file that is named. ``--from`` and ``--frames 1`` decode it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from tests.brokers.cache import CACHE
from tests.hostile.fuzz_worker import Job, Report, frames_together, work, write_fault
from tests.hostile.readers import KAFKA, READERS
from tests.hostile.readers import mutator as mutator_for

STUCK_SECONDS = 120
"""Without a frame finished in this time a worker is taken to be in an endless loop."""

LOG_SECONDS = 60
"""Between two lines of progress in a log file, which has no bar."""


@dataclass(slots=True)
class Worker:
    job: Job
    report: Any
    process: BaseProcess
    seen: int = 0
    seen_at: float = 0.0

    def fault(self) -> str | None:
        """Why this worker must be given up, if it must."""
        if self.process.exitcode is not None and self.process.exitcode < 0:
            return f"the process died of signal {-self.process.exitcode}"
        if self.report.done != self.seen or not self.seen_at:
            self.seen, self.seen_at = self.report.done, time.monotonic()
        elif self.process.is_alive() and time.monotonic() - self.seen_at > STUCK_SECONDS:
            return f"no frame was finished in {STUCK_SECONDS} s"
        return None


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzing as given on the command line."""
    options = _options(arguments)
    readers = tuple(KAFKA) if options.reader == "both" else (options.reader,)
    context = multiprocessing.get_context("spawn")
    workers = []
    for index in range(options.jobs):
        count = (options.frames - index + options.jobs - 1) // options.jobs
        first = options.first + index
        job = Job(options.seed, first, options.jobs, count, readers, options.memory * 2**20, options.faults)
        report = context.RawValue(Report)
        workers.append(Worker(job, report, context.Process(target=work, args=(job, report), daemon=True)))
    console = Console()
    console.print(
        f"{options.frames:,} frames, seed {options.seed}, reader {', '.join(readers)}, {options.jobs} at a time"
    )
    begun = time.monotonic()
    for worker in workers:
        worker.process.start()
    try:
        failed = _watch(workers, console, options.frames)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    _show(workers, console, time.monotonic() - begun)
    return int(failed)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first frame")
    parser.add_argument("--reader", choices=[*READERS, "both"], default="plain", help="both: Kafka's, compared")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--memory", type=int, default=64, help="MiB by which a process may grow")
    parser.add_argument("--faults", type=Path, default=CACHE / "fuzz", help="directory for frames that fail")
    return parser.parse_args(arguments)


def _watch(workers: list[Worker], console: Console, frames: int) -> bool:
    """Wait for the workers. True if one of them failed."""
    with Progress(console=console) as progress:
        task = progress.add_task("decoding", total=frames)
        printed_at = time.monotonic()
        while True:
            alive = any(worker.process.is_alive() for worker in workers)
            done = sum(worker.report.done for worker in workers)
            progress.update(task, completed=done)
            if not console.is_terminal and time.monotonic() - printed_at > LOG_SECONDS:
                memory = max(worker.report.memory_now for worker in workers) / 2**20
                console.print(f"{done:,} frames, {memory:.0f} MiB")
                printed_at = time.monotonic()
            for worker in workers:
                if why := worker.fault():
                    _record(worker, why, console)
                    return True
                if worker.process.exitcode:
                    return True  # it has printed why
            if not alive:
                return False
            time.sleep(0.2)


def _record(worker: Worker, why: str, console: Console) -> None:
    """Write the frames of the call that did not return: they follow from seed and number."""
    job, mutator = worker.job, mutator_for(worker.job.readers, worker.job.seed)
    numbers = range(worker.report.number, worker.report.number + job.step * frames_together(job.readers), job.step)
    path = write_fault(job, worker.report.number, [mutator.frame(number) for number in numbers], why)
    console.print(f"{why}; the frames are in {path}")


def _show(workers: list[Worker], console: Console, seconds: float) -> None:
    reports = [worker.report for worker in workers]
    done, cpu = sum(r.done for r in reports), sum(r.cpu_us for r in reports)
    size = sum(r.bytes for r in reports)
    slowest = max(reports, key=lambda r: r.slowest_us)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    start, end = (max(getattr(r, name) for r in reports) / 2**20 for name in ("memory_start", "memory_now"))
    console.print(
        f"{done:,} frames, {size / 1e6:,.0f} MB in {seconds:,.0f} s: {done / max(seconds, 1e-9):,.0f} frames/s"
    )
    console.print(f"decoding alone: {cpu / max(done, 1):.1f} µs of CPU time a frame")
    console.print(f"resident memory of a process: {start:.0f} MiB at start, {most:.0f} at most, {end:.0f} at the end")
    what = f"{slowest.slowest_us / 1000:.1f} ms for {slowest.slowest_bytes} bytes (frame {slowest.slowest_number})"
    console.print(f"slowest call: {what}")


if __name__ == "__main__":
    raise SystemExit(main())
