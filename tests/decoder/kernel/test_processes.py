"""The kernel in other processes than this one: with array bounds checked, from a zip, after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import decoder
from decoder.kafka.batch import read_batch  # noqa: F401 - loaded before the fork, as Spark's daemon would not
from tests.decoder.kafka.kernel.asked import differences, read
from tests.decoder.kafka.kernel.test_bodies import asked
from tests.hostile.samples import recorded
from tests.paths import ROOT

pytestmark = pytest.mark.slow

ARE_BOUNDS_CHECKED = """
import numpy as np
from decoder.kernel.text import copy
try:
    copy(np.zeros(1, np.uint8), 0, np.zeros(1, np.uint8), 0, 2)
    raise SystemExit("bounds are not checked")
except IndexError:
    pass
"""
BOUNDS_CHECKED = """
from tests.decoder.kafka.kernel.asked import differences, read
from tests.decoder.kafka.kernel.test_bodies import asked
from tests.hostile.samples import made, recorded
from tests.hostile.test_mutations import mutations
frames = [asked(s, s.data[:cut]) for s in recorded() for cut in range(min(len(s.data), 200))]
frames += [asked(s, data) for s, data in mutations(10_000)] + [asked(s) for s in made()]
assert not differences(frames, read(frames))
print(len(frames))
"""
ZIPPED = """
import decoder, numpy as np
from decoder.kafka.kernel import bodies as kernel
from decoder.kafka.batch import read_batch
assert ".zip" in decoder.__file__, decoder.__file__
frame = bytes.fromhex("0012000000000007000464656d6f")
batch = read_batch([frame], np.array([False]), np.array([-1]), np.array([-1]), np.array([0]))
print(bytes(batch.header.data[: batch.header.offsets[1]]).decode(), kernel.read_frames.is_new)
"""


def run(program: str, **environment: str) -> str:
    outcome = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, cwd=environment.get("PWD", ROOT),
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.strip()


@pytest.mark.proof
def test_no_access_is_out_of_bounds(tmp_path: Path) -> None:
    read_frames = run(ARE_BOUNDS_CHECKED + BOUNDS_CHECKED, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert int(read_frames) > 15_000


def test_zipped_sources_are_compiled_once(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    package = Path(decoder.__file__).parent  # installed, it is not where the tests are
    with zipfile.ZipFile(archive, "w") as target:
        for path in package.rglob("*"):
            if path.suffix in (".py", ".json"):
                target.write(path, path.relative_to(package.parent))
    place = {"PYTHONPATH": str(archive), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PWD": str(tmp_path)}
    header = '{"requestApiKey":18,"requestApiVersion":0,"correlationId":7,"clientId":"demo"}'
    assert run(ZIPPED, **place) == f"{header} True"
    assert run(ZIPPED, **place) == f"{header} False"


def test_a_forked_process_goes_on_with_the_kernel_of_its_parent() -> None:
    frames = [asked(sample) for sample in recorded()]
    expected = read(frames).outcomes.tolist()
    child = os.fork()
    if child == 0:
        batch = read(frames)
        good = batch.outcomes.tolist() == expected and not differences(frames, batch)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
