"""A process with a limit of memory loads no compiled code that it has no room for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from decoder import Codec
from pipeline.analysis import pairing
from pipeline.analysis.frames import decode, kernel
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import GAPS
from tests.hostile.amplifiers.plain import heartbeats
from tests.pipeline.rows import arrow

_WITH_A_LIMIT = """
import re, resource, sys
from pathlib import Path
from pipeline.capture.runs.reading import read_capture
from pipeline.config.memory_limits import has_room_to_compile
limit = int(sys.argv[1])
if limit:
    used = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + limit, resource.RLIM_INFINITY))
stats = read_capture([sys.argv[2]], sys.argv[3])
print(has_room_to_compile(), "decoder.kernel.compiled" in sys.modules, stats.packets > 0)
"""


@pytest.mark.parametrize(("limit_mib", "printed"), [(700, "False False True"), (0, "True True True")])
def test_without_room_a_large_capture_is_read_without_compiled_code(
    limit_mib: int, printed: str, tmp_path: Path
) -> None:
    script = "import pipeline.capture.runs.reading as r; r.LARGE_BYTES = 0\n" + _WITH_A_LIMIT
    command = [sys.executable, "-c", script, str(limit_mib * 2**20), "tests/captures/healthy.pcap", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, printed), done.stderr


def test_what_the_kernel_has_no_memory_for_is_decoded_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(kernel, "decode_by_kernel", fails)
    [batch] = heartbeats(10).table().combine_chunks().to_batches()
    by_kernel, plainly = (
        pa.Table.from_batches(decode.decode_batch(Codec(), batch, by_kernel=is_so)) for is_so in (True, False)
    )
    assert by_kernel.equals(plainly)
    assert set(plainly.column("decode_status").to_pylist()) == {"ok"}


def test_without_memory_for_exchanges_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pairing, "_paired", fails)
    with pytest.raises(MemoryError):
        diagnose(Landed(heartbeats(10).table(), arrow(GAPS), None), StreamSettings())
