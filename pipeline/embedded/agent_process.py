"""A capture agent in a process of its own: what it reads lands in a private folder, and is taken from there.

Two processes read and judge at once, and while one judges the other still takes what comes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import IO

from pipeline.capture.runs.agent import DEFAULT_AGENT_ID
from pipeline.capture.stats import CaptureStats
from pipeline.config.settings import Settings, environment_of
from pipeline.embedded.private_folder import of_private_folder, private_folder
from pipeline.setup.program import OWN_PATH

PUBLISH_EVERY_S = 1.0
"""Seconds after which what an agent has read can be seen."""

MOST_WAITING = 256 << 20
"""Bytes of landed files that wait to be taken, from which on the agent waits, too: thirteen million small frames."""

_MOST_LINES = 100
"""Kept of what the agent prints, the last ones."""

_LISTEN_S = 5.0
"""What an agent printed is there soon after its end; a program that it had started may hold the line open, s."""

_WARNING = "warning: "

_RUN = f"""
{OWN_PATH}
import ctypes, signal
try:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: it does not outlive who judges what it reads
except (AttributeError, OSError):
    pass
from wirelake.start import main
main()
"""


class AgentProcess:
    """``wirelake capture read`` at work. Leaving the context ends it.

    Args:
        arguments: what to read, and how.
        settings: what reading may cost. What else concerns an agent is as where captures are read in one process: names
            and payload policy of what others keep are not those of what is only judged.
        stdin: what the process reads as its standard input; None: that of this one.

    Attributes:
        zone: the folder where it lands what it reads.
        stats: what it has counted, after :meth:`outcome`; None: it did not come to that.
    """

    def __init__(self, arguments: Sequence[str], settings: Settings, stdin: IO[bytes] | None = None) -> None:
        self._arguments = arguments
        self._settings = settings
        self._stdin = stdin
        self.stats: CaptureStats | None = None
        self._is_stopped = False
        self._printed: deque[str] = deque(maxlen=_MOST_LINES)
        self._printing = threading.Lock()

    def __enter__(self) -> AgentProcess:
        with ExitStack() as stack:  # of one that cannot begin nothing stays
            self.zone = stack.enter_context(private_folder()) / "landing"
            self._begin()
            self._stack = stack.pop_all()
        return self

    def _begin(self) -> None:
        how = ["--publish-every", str(PUBLISH_EVERY_S), "--most-lying", str(MOST_WAITING)]
        how += ["--store-timeout", "0"]  # its waiting would not be seen
        how += ["--payload", "lengths", "--agent-id", DEFAULT_AGENT_ID]
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _RUN, "capture", "read", *self._arguments, "--json", "--landing",
                str(self.zone), *how,
            ],
            stdin=self._stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env={**os.environ, **environment_of(self._settings, "work")},
        )  # fmt: skip
        # A file would be where no room may be left: the reason of most troubles.
        self._listeners = [
            threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True),
            threading.Thread(target=self._take_counts, args=(self._process.stdout,), daemon=True),
        ]
        try:
            for listener in self._listeners:
                listener.start()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _listen(self, errors: IO[bytes]) -> None:
        """The thread: take what the agent prints."""
        with errors:
            for line in errors:
                with self._printing:
                    self._printed.append(line.decode("utf-8", "replace").rstrip())

    def _take_counts(self, output: IO[bytes]) -> None:
        """The other one: take what it has counted, which it prints at its end."""
        with output:
            line = output.read().strip()
        if line:  # of one that was killed there is none
            self.stats = CaptureStats.of_dict(json.loads(line))

    def _end_listening(self) -> None:
        for listener in self._listeners:
            listener.join(_LISTEN_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self._process.kill()
            self._process.wait()
        self._end_listening()
        self._stack.close()

    @property
    def is_running(self) -> bool:
        """Whether it still reads."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to end in good order: what it has read lands."""
        if self.is_running and not self._is_stopped:  # a second signal would interrupt it
            self._is_stopped = True
            self._process.terminate()

    def warnings(self) -> list[str]:
        """What it has warned of since this was asked last."""
        with self._printing:  # a line that came meanwhile would be the newest, and the first to find no room
            lines = list(self._printed)
            self._printed.clear()
            self._printed.extend(line for line in lines if not line.startswith(_WARNING))
        return [line for line in lines if line.startswith(_WARNING)]

    def outcome(self) -> tuple[bool, str]:
        """Of an ended one whether it has read all that it was given, and what it has warned of, or why it could not."""
        self._end_listening()
        with self._printing:  # the listener may still be at it: see _LISTEN_S
            printed = "\n".join(self._printed).strip()
        is_early = self._is_stopped and self._process.returncode == -signal.SIGTERM  # asked before it could listen
        if is_early or not self._process.returncode:
            return True, printed
        reason = printed.removeprefix("error: ") or f"the agent ended with {self._process.returncode}"
        return False, of_private_folder(reason) if str(self.zone) in reason else reason
