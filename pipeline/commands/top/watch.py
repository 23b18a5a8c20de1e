"""The screen while traffic continues: read, judge, draw, heed keys."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack

import typer
from rich.live import Live
from rich.text import Text

from pipeline.capture.packets.pipe import Stop, stop_on_signals
from pipeline.capture.runs.summary import nothing_found
from pipeline.capture.stats import CaptureStats
from pipeline.commands.top.keys import Keys
from pipeline.commands.top.screen import Shown, screen
from pipeline.commands.top.sort import Order, Sort
from pipeline.commands.unjudged import error_sentences
from pipeline.config.settings import Settings
from pipeline.embedded.feed import Feed, open_feed, reading_s
from pipeline.embedded.live_monitor import LiveMonitor, Snapshot
from pipeline.errors import UserError
from pipeline.terminal.console import Console

LOOK_EVERY_S = 0.2
"""How often it is looked for something new."""
_SORTS = {"l": Sort.lag, "t": Sort.trend, "r": Sort.rate, "p": Sort.p99, "e": Sort.errors}
_QUIT = "q"
_MOST_NOTES = 20


def watch_and_show(
    source: str,
    watch: LiveMonitor,
    order: Order,
    every_s: float,
    options: Sequence[str],
    settings: Settings,
    console: Console,
) -> None:
    """Show how things are until there is nothing more, or somebody wants to stop; the last screen stays.

    Args:
        source: ``-``, a directory of rotated files, a landing zone, a capture.
        watch: takes what comes.
        order: by what rows are ordered at first.
        every_s: seconds from one screen to the next; more where it takes longer to judge.
        options: of ``capture read``, for the agent.
        settings: what reading may cost the agent.
        console: standard output.

    Raises:
        UserError: nothing can be read.
        typer.Exit: with 2 if not all could be read or judged.
    """
    session = _Session(source, watch, order, every_s, console)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        feed = stack.enter_context(open_feed(source, options, settings))
        with session:
            was_quit = session.run(feed, stop)
        is_whole, reason = (True, "") if was_quit else feed.outcome()
    errors = Console(stderr=True)
    if not session.show_last(was_quit=was_quit) and not was_quit:
        raise UserError(reason or why_nothing(watch, feed.stats))
    for text in (*session.notes, reason):
        if text:
            errors.print(Text(f"warning: {text.removeprefix('warning: ')}", "yellow"), soft_wrap=True)
    if watch.errors or not is_whole:
        raise typer.Exit(2)


def why_nothing(watch: LiveMonitor, stats: CaptureStats | None) -> str:
    """Why there is nothing to show; ``stats`` as of :func:`nothing_found`."""
    if watch.other_ports:
        seen = ", ".join(map(str, watch.other_ports))
        return f"no message of a server on the ports asked for was found, but of port {seen}"
    return nothing_found(stats)


class _Session:
    """One sitting before the screen, from the first message on; leaving the context gives the terminal back."""

    def __init__(self, source: str, watch: LiveMonitor, order: Order, every_s: float, console: Console) -> None:
        self._source = source
        self._watch = watch
        self._order = order
        self._every_s = every_s
        self._console = console
        self._keys = Keys()
        self._live: Live | None = None
        self._now: Snapshot | None = None
        self._arrived = self._drawn = time.monotonic()
        self._ahead_us: int | None = None
        self._is_to_pause = False
        self.notes: deque[str] = deque(maxlen=_MOST_NOTES)

    def __enter__(self) -> _Session:
        self._pauses = signal.signal(signal.SIGTSTP, self._ask_for_pause)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTSTP, self._pauses)
        self._give_back()

    def _give_back(self) -> None:
        """The terminal is as it was before."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._keys.close()

    def _ask_for_pause(self, *_: object) -> None:
        self._is_to_pause = True

    def _pause(self) -> None:
        """What Ctrl-Z asks for: the shell has the terminal until it says `fg`."""
        self._is_to_pause = False
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._draw()

    def run(self, feed: Feed, stop: Stop) -> bool:
        """Until the end; True if somebody pressed the key for it."""
        is_unjudged, took_s = False, 0.0
        while True:
            is_last = feed.has_ended if feed.can_end else stop.asked()
            rows = feed.take()
            self.notes += feed.notes()
            if rows is not None:
                self._watch.add(*rows)
                self.notes += self._watch.limits()
                self._arrived, is_unjudged = time.monotonic(), True
                self._set_clock()
            elif is_last:
                if is_unjudged:
                    self._watch.judge()
                return False
            if stop.asked():  # also while more and more comes
                feed.stop()
            pause_s = max(self._every_s, reading_s(took_s, is_behind=feed.is_behind))
            if self._watch.has_something and time.monotonic() - self._drawn >= pause_s:
                begin = time.monotonic()
                if is_unjudged:
                    self._watch.judge()
                    self.notes += [one for one in error_sentences(self._watch.errors) if one not in self.notes]
                    is_unjudged = False
                self._look()
                took_s = time.monotonic() - begin  # not to draw: a terminal may let us wait
                self._draw()
                self._drawn = time.monotonic()
                if took_s > self._every_s:  # so that at least half of the time is for reading
                    self._watch.keep_less()
            if self._is_to_pause:
                self._pause()
            if self._heed(self._keys.wait(0.0 if rows is not None else LOOK_EVERY_S)):
                return True

    def _heed(self, key: str) -> bool:
        """Do what a key asks for; True if that is to end."""
        if key in _SORTS:
            self._order = self._order.by(_SORTS[key])
            self._draw()
        return key == _QUIT

    def _set_clock(self) -> None:
        """The traffic's clock continues by itself, and is set forward by what comes: never back by what comes late."""
        if self._watch.last_us is not None:
            ahead_us = self._watch.last_us - int(time.monotonic() * 1e6)
            self._ahead_us = ahead_us if self._ahead_us is None else max(self._ahead_us, ahead_us)

    def _look(self) -> None:
        self._now = None if self._ahead_us is None else self._watch.now(int(time.monotonic() * 1e6) + self._ahead_us)

    def _draw(self) -> None:
        if self._now is None:
            return
        with self._watch.noting_errors():
            self._show(self._now)

    def _show(self, now: Snapshot) -> None:
        console = self._console
        if not console.is_terminal or console.is_dumb_terminal:
            console.print(screen(now, self._shown(), console.width), Text())
            console.file.flush()
            return
        if self._live is None:
            self._keys.open()
            self._live = Live(console=console, screen=True, auto_refresh=False)
            self._live.start()
        self._live.update(screen(now, self._shown(), console.width, console.height), refresh=True)

    def _shown(self) -> Shown:
        silent_s = time.monotonic() - self._arrived
        note = self.notes[-1] if self.notes else ""
        return Shown(self._source, self._order, silent_s, note, self._keys.are_heeded)

    def show_last(self, *, was_quit: bool) -> bool:
        """Print what was known in the end, or seen when somebody had enough of it; False if nothing was."""
        if not was_quit:
            self._now = self._watch.now()
        if self._now is None:
            return False
        height = self._console.height - 1 if self._console.is_terminal else None
        with self._watch.noting_errors():
            drawn = screen(self._now, Shown(self._source, self._order), self._console.width, height)
        self._console.print(drawn)
        return True
