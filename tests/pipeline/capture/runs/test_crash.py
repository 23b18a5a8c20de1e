"""kill -9 at any moment: no reader ever sees half a file, and reading the capture again gives what was due, once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter

import pytest

from pipeline.capture.landing import files as landing_files
from pipeline.capture.runs.reading import read_capture
from tests.pipeline.capture import uploading
from tests.pipeline.capture.landing.test_landing import capture, contents
from tests.pipeline.capture.s3 import S3, cut_after

pytestmark = pytest.mark.slow

ROWS = 40
POINTS = 20

FORKS = '''
"""Reads a capture many times, each in a process of its own that dies by SIGKILL at a given point."""
import os, signal, sys, time
from pathlib import Path
from pipeline.capture.landing import files as landing_files
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.runs.reading import read_capture

capture, root, kind, rows, points = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
landing_files.ROWS_PER_FILE = rows
frames = len(list(frames_of(capture)))  # loads what is loaded at first use, too

def in_child(work):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    return child

def before_file_operation(point, landing):
    """Dies before the file operation of this number in the landing zone; None: how many there are."""
    done = 0
    def hook(event, arguments):
        nonlocal done
        if event in ("open", "os.rename", "os.mkdir", "os.remove") and str(landing) in str(arguments[0]):
            done += 1
            if done == point:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    read_capture([capture], landing)
    if point is None:
        (root / "operations").write_text(str(done))

def at_share_of_bytes(share, landing):
    """Dies when it has got this share of the capture, and written what follows from it but for one file at most."""
    data = Path(capture).read_bytes()
    fifo = root / f"{landing.name}.pipe"
    os.mkfifo(fifo)
    child = in_child(lambda: read_capture([fifo], landing))
    with fifo.open("wb", buffering=0) as pipe:
        pipe.write(data[: int(len(data) * share)])
        end = time.monotonic() + 60
        while len(list(landing.glob("_manifest/*"))) < int(frames * share / rows) - 1 and time.monotonic() < end:
            pass
        os.kill(child, signal.SIGKILL)
    return child

if kind == "operations":
    os.waitpid(in_child(lambda: before_file_operation(None, root / "counted")), 0)
    count = int((root / "operations").read_text())
for number in range(points):
    landing = root / f"at-{number}"
    if kind == "operations":
        point = 1 + number * (count - 1) // (points - 1)
        child = in_child(lambda: before_file_operation(point, landing))
    else:
        child = at_share_of_bytes((number + 1) / points, landing)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'''


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", ROWS)


def assert_whole(visible: dict[str, bytes]) -> None:
    """Each file that a reader sees is as its manifest describes it."""
    for path, content in visible.items():
        if path.endswith(".parquet"):
            name = path.rpartition("/")[2].removesuffix(".parquet")
            folder = "_manifest/gaps" if path.startswith("gaps/") else "_manifest"
            manifest = json.loads(visible[f"{folder}/{name}.json"])
            assert (manifest["bytes"], manifest["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(("kind", "lost"), [("operations", 9), ("bytes", None)])
def test_a_process_killed_anywhere(tmp_path, kind, lost):
    path = capture(tmp_path / "x.pcap", 70, lost)
    read_capture([path], tmp_path / "undisturbed")
    undisturbed = contents(tmp_path / "undisturbed")
    arguments = map(str, [path, tmp_path, kind, ROWS, POINTS])
    done = subprocess.run([sys.executable, "-c", FORKS, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["-9"] * POINTS
    left = Counter[int]()
    for landing in (tmp_path / f"at-{point}" for point in range(POINTS)):
        visible = {p: content for p, content in contents(landing).items() if not p.startswith(".")}
        assert_whole(visible)
        assert visible.items() <= undisturbed.items()
        left[len(visible)] += 1
        read_capture([path], landing)
        assert contents(landing) == undisturbed
    assert len(left) > 1, "the points are spread over the work"


def test_a_process_killed_while_it_uploads(s3: S3):
    uploading.upload(s3.url("undisturbed"), ROWS)
    undisturbed = s3.objects("undisturbed")
    sizes = sorted(len(content) for content in undisturbed.values())
    assert len(sizes) == 4
    seen = []
    for point, sent in enumerate([200, 9000, 3 << 20, sizes[-1]]):
        prefix = f"at-{point}"
        with cut_after(sent, s3.port) as (port, is_cut):
            process = subprocess.Popen([sys.executable, "-m", uploading.__name__, s3.url(prefix, port), str(ROWS)])
            is_cut.wait(60)
            process.kill()
            process.wait()
        held = s3.objects(prefix)
        assert_whole(held)
        assert held.items() <= undisturbed.items()
        seen.append(len(held))
        uploading.upload(s3.url(prefix), ROWS)
        assert s3.objects(prefix) == undisturbed
    assert seen[0] == 0
    assert seen[-1] == 3, "the large file's manifest is there, the file is not"
