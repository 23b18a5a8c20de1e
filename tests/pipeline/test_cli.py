"""The program as a whole: what the user's machine does not allow is reported, with exit code 2."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.paths import CAPTURES

HEALTHY = CAPTURES / "healthy.pcap"


def test_the_version_is_shown():
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "--version"], capture_output=True, text=True, check=False
    )
    python = ".".join(map(str, sys.version_info[:3]))
    assert (done.returncode, done.stdout) == (0, f"wirelake {version('wirelake')}, Python {python}\n")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("options", [(), ("--json",), ("--json", "--api", "ApiVersions")])
def test_no_room_for_the_output(options):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", "decode", str(HEALTHY), *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "error: cannot write: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--json",), ("--records",), ("--records", "--json")])
def test_a_reader_that_goes_away_ends_it_quietly(options):
    """As `| head -n 1` does; the code is that of any tool that SIGPIPE ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "decode", *[str(HEALTHY)] * 4, *options],  # more than a pipe holds
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    "raised",
    [
        "MemoryError()",
        "pyarrow.lib.ArrowMemoryError('malloc')",
        "duckdb.OutOfMemoryException('block')",
        "ImportError('libx.so: failed to map segment from shared object')",
        "OSError(12, 'Cannot allocate memory')",
        'RuntimeError("can\'t start new thread")',
        "OSError('cannot load it') from MemoryError()",
    ],
)
def test_running_out_of_memory_is_a_sentence(raised):
    program = f"""
import duckdb, pyarrow
from pipeline import cli
def app():
    raise {raised}
cli.app = app
cli.main()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: out of memory. ")
    assert "Traceback" not in ended.stderr
