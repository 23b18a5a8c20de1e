"""``wirelake diagnose --open``: the page comes, also where its port is taken, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.commands.diagnose_open import free_port
from tests.paths import CAPTURES, ROOT
from tests.pipeline.embedded.test_diagnose import STUCK, refusal, run


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield


def test_another_port_is_taken_where_the_usual_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = free_port()
    monkeypatch.setattr("pipeline.commands.diagnose_open._PORT", usual)
    assert free_port() == usual
    with taken(usual):
        assert free_port() != usual


def test_what_was_found_is_printed_where_its_tables_cannot_be_left_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    done = run(STUCK, "--lake", tmp_path / "file" / "lake")
    assert (done.exit_code, "CRITICAL" in done.stdout) == (1, True)
    assert "error: cannot write the lake" in done.stderr
    monkeypatch.setattr("pipeline.commands.diagnose_open.RUN", "raise SystemExit(2)")
    done = run(STUCK, "--open")
    assert (done.exit_code, "CRITICAL" in done.stdout) == (1, True)
    assert "error: the page could not be shown" in done.stderr
    assert "the page could not be shown" in refusal(CAPTURES / "version_negotiation.pcap", "--open")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 128 + signal.SIGHUP)],
)
def test_the_page_ends_well(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """By Ctrl-C with the exit code of what was found: there is something critical."""
    pytest.importorskip("streamlit")
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "diagnose", str(STUCK), "--open"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, cwd=ROOT, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "BROWSER": "true"},
    )  # fmt: skip
    assert process.stderr is not None
    with process.stderr as errors:
        line = errors.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert url, line
        assert urllib.request.urlopen(f"{url[0]}/_stcore/health", timeout=30).status == 200  # noqa: S310 - ours
        os.killpg(process.pid, number) if number != signal.SIGTERM else process.send_signal(number)
        assert errors.read() == ""
    assert process.wait(60) == code
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("wirelake")] == []
