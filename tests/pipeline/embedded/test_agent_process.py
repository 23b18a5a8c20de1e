"""An agent in a process of its own ends well whenever it is asked to, also before it has begun."""

from __future__ import annotations

import os
import time

import pytest

from pipeline.embedded.agent_process import AgentProcess
from tests.paths import CAPTURES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("after_s", [0.0, 0.3, 3.0])
def test_an_agent_that_is_stopped_early_is_no_fault(after_s: float) -> None:
    read, write = os.pipe()  # stays open: there would be more to read
    os.write(write, (CAPTURES / "healthy.pcap").read_bytes()[:24])
    with os.fdopen(read, "rb") as stdin, os.fdopen(write, "wb"), AgentProcess(["-"], stdin) as agent:
        time.sleep(after_s)
        agent.stop()
        agent.stop()
        deadline = time.monotonic() + 60
        while agent.is_running and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not agent.is_running
        assert agent.outcome()[0], agent.outcome()
