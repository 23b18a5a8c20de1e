"""An agent in a process of its own ends well whenever it is asked to, also before it has begun."""

from __future__ import annotations

import io
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from pipeline.config.settings import Settings
from pipeline.embedded.agent_process import AgentProcess
from tests.paths import CAPTURES


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 0.3, 3.0])
def test_an_agent_that_is_stopped_early_is_no_fault(after_s: float) -> None:
    read, write = os.pipe()  # stays open: there would be more to read
    os.write(write, (CAPTURES / "healthy.pcap").read_bytes()[:24])
    with os.fdopen(read, "rb") as stdin, os.fdopen(write, "wb"), AgentProcess(["-"], Settings(), stdin) as agent:
        time.sleep(after_s)
        agent.stop()
        agent.stop()
        deadline = time.monotonic() + 60
        while agent.is_running and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not agent.is_running
        assert agent.outcome()[0], agent.outcome()


def test_the_last_line_of_an_agent_that_prints_much_is_kept() -> None:
    """Also if it comes while warnings are taken: it is the reason why the agent ended."""
    agent = AgentProcess([], Settings())
    agent._listen(io.BytesIO(b"warning: w\n" + b"".join(b"line %d\n" % number for number in range(99))))
    assert agent.warnings() == ["warning: w"]
    agent._listen(io.BytesIO(b"line 99\nerror: no room\n"))
    assert agent.warnings() == []
    assert list(agent._printed)[-1] == "error: no room"
    assert len(agent._printed) == 100


def test_an_agent_that_cannot_begin_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("pipeline.embedded.agent_process.subprocess.Popen", fail)
    before = signal.getsignal(signal.SIGTERM)
    agent = AgentProcess(["-"], Settings())
    with pytest.raises(OSError, match="no more processes"), agent:
        pass
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before
