"""What a capture costs to judge, in a child: CPU time and memory of derivations, rules, incidents and reports.

The child judges next to nothing first, so that its imports, caches and connections are paid for; a second time of that
is what any capture costs, however small.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import re
import resource
import signal
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import pyarrow as pa

from pipeline.commands.incidents import show_incidents
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import GAPS
from pipeline.terminal.console import Console
from tests.pipeline.rows import arrow

MIB = 2**20
MOST_MEMORY = 6 * 1024 * MIB
_CONTEXT = multiprocessing.get_context("fork")
_SAMPLE_S = 0.02


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds and resident bytes beyond the begin; how it ended, if not by itself; where the time went.

    Attributes:
        base_s: CPU seconds that next to no traffic took before, in the same process.
    """

    cpu_s: float
    memory: int
    died: str = ""
    spots: list[tuple[str, float]] = field(default_factory=list)
    findings: int = 0
    base_s: float = 0.0


def cost(landed: pa.Table, nothing: pa.Table, limit_s: float = 30.0) -> Cost:
    """Diagnose landed frames in a child of this process, after next to none (``nothing``)."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_measure, args=(landed, nothing, limit_s, sender), daemon=True)
    process.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(10 * limit_s + 60) else None
    except EOFError:
        found = None
    process.kill()
    process.join()
    return found if isinstance(found, Cost) else Cost(limit_s, MOST_MEMORY, f"exit code {process.exitcode}")


def report(found: Diagnosis) -> str:
    """What a terminal would show."""
    text = io.StringIO()
    console = Console(file=text, width=120)
    show_incidents(found.incidents.to_pylist(), found.findings.to_pylist(), lambda _: [], console)
    return text.getvalue()


class _OutOfTimeError(BaseException):
    pass


def _judged(landed: pa.Table) -> Diagnosis:
    """A diagnosis, shown."""
    found = diagnose(Landed(landed, arrow(GAPS), None), StreamSettings())
    with contextlib.redirect_stdout(io.StringIO()):
        report(found)
    return found


def _measure(landed: pa.Table, nothing: pa.Table, limit_s: float, sender: Connection) -> None:
    _judged(nothing)
    before = time.process_time()
    _judged(nothing)
    base_s = time.process_time() - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    base, begin = _memory("VmRSS"), time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + MOST_MEMORY, resource.RLIM_INFINITY))
    spent: Counter[str] = Counter()
    last = [begin]

    def sample(_: int, frame: FrameType | None) -> None:
        now = time.process_time()
        spent[_place(frame)] += now - last[0]  # type: ignore[assignment]
        last[0] = now
        if now - begin > limit_s:
            signal.setitimer(signal.ITIMER_PROF, 0)
            raise _OutOfTimeError

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_S, _SAMPLE_S)
    died, findings = "", 0
    try:
        findings = _judged(landed).findings.num_rows
    except _OutOfTimeError:
        died = "out of time"
    except BaseException as error:
        place = [line for line in traceback.format_exception(error) if "wt/" in line or "pipeline/" in line][-1:]
        died = f"{type(error).__name__}: {str(error)[:200]} {''.join(place)[-200:]}"
    signal.setitimer(signal.ITIMER_PROF, 0)
    spots = [(place, float(value)) for place, value in spent.most_common(4)]
    sender.send(Cost(time.process_time() - begin, max(_memory("VmHWM") - base, 0), died, spots, findings, base_s))


def _place(frame: FrameType | None) -> str:
    """The innermost function of ours that is not one that all share."""
    while frame is not None:
        code = frame.f_code
        if "/pipeline/" in code.co_filename and not code.co_filename.endswith(("analysis/tables.py", "arrow.py")):
            return f"{code.co_filename.split('/pipeline/')[1]}:{code.co_name}"
        frame = frame.f_back
    return "?"


def _memory(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
