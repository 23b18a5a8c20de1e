"""Does the long fuzzing work, and does it see what it looks for? A few thousand frames, always the same."""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections import Counter

import pytest

from decoder import Message
from tests.hostile import fuzz_worker
from tests.hostile.fuzz import main
from tests.hostile.fuzz_worker import Job, Report, run
from tests.hostile.mutate import MUTATIONS, Mutator
from tests.hostile.readers import READERS, Reader

pytestmark = pytest.mark.slow

COUNT = 4000


def job(tmp_path, reader: str = "plain", count: int = 1, *, timed: bool = False) -> Job:
    return Job(7, 0, 1, count, (reader,), 64 * 2**20, tmp_path, timed)


@pytest.mark.parametrize("reader", READERS)
def test_a_few_thousand_hostile_frames(tmp_path, reader):
    report = Report()
    run(job(tmp_path, reader, COUNT), report)
    assert report.done == COUNT
    assert report.slowest_bytes > 0
    assert not list(tmp_path.iterdir())


def test_the_frames_are_the_same_each_time_and_of_every_kind():
    frames = [Mutator(7).frame(number) for number in range(COUNT)]
    assert frames == [Mutator(7).frame(number) for number in range(COUNT)]
    assert frames[:50] != [Mutator(8).frame(number) for number in range(50)]
    made_by = Counter(name for frame in frames for name in frame.made_by.split(": ")[1].split(", "))
    assert set(made_by) == {mutation.__name__ for mutation in MUTATIONS}


def raises(frames):
    raise ZeroDivisionError


def internal_error(frames):
    return [Message({}, {}, "malformed", "internal", 0, "fault")]


def gives_nothing(frames):
    return []


def is_slow(frames):
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    return []


@pytest.mark.parametrize("decode", [raises, internal_error, gives_nothing, is_slow])
def test_a_violation_is_written_down_and_ends_it(tmp_path, monkeypatch, decode):
    monkeypatch.setitem(READERS, "bad", Reader(decode, at_once=1))
    with pytest.raises(SystemExit, match="1"):
        run(job(tmp_path, "bad", timed=True), Report())
    (fault,) = tmp_path.iterdir()
    assert "seed 7, from frame 0" in fault.read_text()
    assert Mutator(7).frame(0).data.hex() in fault.read_text()


def test_readers_that_differ_are_a_violation(tmp_path, monkeypatch):
    other = Reader(lambda frames: [Message({}, {}, "ok") for _ in frames], at_once=10)
    monkeypatch.setitem(READERS, "other", other)
    with pytest.raises(SystemExit, match="1"):
        run(Job(7, 0, 1, 10, ("plain", "other"), 64 * 2**20, tmp_path, timed=False), Report())
    assert "the readers differ in" in next(tmp_path.iterdir()).read_text()


def test_memory_that_grows_is_a_violation(tmp_path, monkeypatch):
    kept = []

    def leak(frames):
        kept.append(mmap.mmap(-1, 2**20))  # not from memory that the process has freed before
        kept[-1].write(b"\1" * 2**20)
        return READERS["plain"].decode(frames)

    monkeypatch.setattr(fuzz_worker, "WARM_UP", 5)
    monkeypatch.setattr(fuzz_worker, "MEMORY_EVERY", 1)
    monkeypatch.setitem(READERS, "leaking", Reader(leak, at_once=1))
    with pytest.raises(SystemExit, match="1"):
        run(job(tmp_path, "leaking", 200), Report())
    assert 64 <= len(kept) <= 120, "found before the run ends, though other memory may be given back meanwhile"


def die(_job, report):
    report.number = 3
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_leaves_the_frame(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.hostile.fuzz.work", die)
    assert main(["--frames", "10", "--seed", "7", "--faults", str(tmp_path)]) == 1
    (fault,) = tmp_path.iterdir()
    assert "died of signal 9" in fault.read_text()
    assert Mutator(7).frame(3).data.hex() in fault.read_text()


def test_as_a_program(tmp_path, capsys):
    assert main(["--frames", "300", "--seed", "7", "--jobs", "2", "--faults", str(tmp_path)]) == 0
    assert "300 frames" in capsys.readouterr().out
