"""Landed rows of something that continues: a pipe, a directory into which files are rotated, a landing zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from pipeline.capture.packets.sources import STDIN
from pipeline.capture.stats import CaptureStats
from pipeline.config.settings import Settings
from pipeline.embedded.agent_process import AgentProcess
from pipeline.embedded.new_files import NewFiles
from pipeline.lake.path_checks import is_landing_zone


def reading_s(judging_s: float, *, is_behind: bool) -> float:
    """For how long to read on after a judgement: for half of the time, or if more has landed for three quarters.

    Args:
        judging_s: how long the judgement took, s.
        is_behind: whether more has landed than was taken.
    """
    return judging_s * (3.0 if is_behind else 1.0)


class Feed:
    """What comes.

    Args:
        news: the files of a landing zone.
        agent: who writes them, if that is us; else its end is unknown.
    """

    def __init__(self, news: NewFiles, agent: AgentProcess | None) -> None:
        self._news = news
        self._agent = agent

    def take(self) -> tuple[pa.Table, pa.Table] | None:
        """Further frames and gaps; None: there are none now.

        Raises:
            UserError: a file cannot be read.
        """
        return self._news.take()

    def notes(self) -> list[str]:
        """Why files were left out, and what the agent has warned of, since this was asked last."""
        notes, self._news.set_aside = self._news.set_aside, []
        return notes + (self._agent.warnings() if self._agent is not None else [])

    @property
    def is_behind(self) -> bool:
        """Whether more has landed than :meth:`take` gave."""
        return self._news.has_more

    @property
    def can_end(self) -> bool:
        """Whether it ends by itself, or after :meth:`stop`; of somebody else's landing zone it is unknown."""
        return self._agent is not None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes than what :meth:`take` still gives."""
        return self._agent is not None and not self._agent.is_running

    def stop(self) -> None:
        """Ask for an end in good order: of what has landed by then, or what the agent has read."""
        if self._agent is not None:
            self._agent.stop()
        else:
            self._news.close()

    def outcome(self) -> tuple[bool, str]:
        """After the end whether all was read, and what was warned of, or why it could not be."""
        return self._agent.outcome() if self._agent is not None else (True, "")

    @property
    def stats(self) -> CaptureStats | None:
        """What the agent has counted, after :meth:`outcome`; None of somebody else's landing zone."""
        return self._agent.stats if self._agent is not None else None


@contextmanager
def open_feed(source: str, options: Sequence[str], settings: Settings) -> Iterator[Feed]:
    """Begin to read.

    Args:
        source: ``-``, a directory of rotated files, a landing zone, a capture.
        options: of ``capture read``, for the agent.
        settings: those by which the agent reads.
    """
    if is_landing_zone(source):
        yield Feed(NewFiles(Path(source)), None)
        return
    way = ["--follow", source] if Path(source).is_dir() and source != STDIN else [source]
    with AgentProcess([*way, *options], settings) as agent:
        yield Feed(NewFiles(agent.zone, removes=True), agent)
