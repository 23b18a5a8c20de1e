"""The terminal program: screens of lines, a line that narrows them, keys and the mouse. Needs Textual."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from pipeline.commands.open.growing import Growing
from pipeline.commands.open.layout import Drawn, drawn, fitted
from pipeline.commands.open.screens import Rooms
from pipeline.commands.open.source import Source
from pipeline.commands.open.view import Row, Start, Target, View
from pipeline.errors import UserError
from pipeline.terminal.console import printable

KEYS = (
    ("Enter, →, click", "open the line (those with ▸ lead somewhere)"),
    ("Esc, ←, Backspace", "go back; while lines are narrowed: show all lines"),
    ("↑ ↓, j k, wheel", "move from line to line"),
    ("PgUp PgDn, Home End", "move by a screen, to the first and last line"),
    ("/", "show only lines with some words; Enter: to the lines"),
    ("?", "show these keys"),
    ("Ctrl-Z", "give the terminal to the shell until `fg`"),
    ("q, Ctrl-C", "end"),
)
"""What keys do, as the help lists them."""
_BAR, _SIDES = 1, 2
"""Columns beside the lines: the scroll bar, and blanks."""
_LOOK_EVERY_S = 1.0
"""How often it is looked whether what is shown has grown."""
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Help(ModalScreen[None]):
    """The keys."""

    CSS = """
    Help { align: center middle; }
    Help > Static { width: auto; max-width: 100%; height: auto; padding: 1 2;
        border: round $primary; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter,q", "dismiss", "back")]

    def compose(self) -> ComposeResult:
        """See Textual."""
        wide = max(len(keys) for keys, _ in KEYS)
        text = Text("\n").join(Text.assemble((f"{keys:<{wide}}  ", "bold"), does) for keys, does in KEYS)
        yield Static(text)

    def on_click(self) -> None:
        """A click anywhere goes back."""
        self.dismiss()


class Choice(Option):
    """A line of a screen; one without a row cannot be looked at."""

    def __init__(self, line: Drawn) -> None:
        super().__init__(line.text, disabled=line.row is None)
        self.row = line.row


class Lines(OptionList):
    """The lines of a screen, one of which is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open", key_display="enter")]


class Room(Screen[None]):
    """One view, line by line."""

    CSS = """
    #way { height: 1; background: $primary; color: $text; padding: 0 1; }
    #lines { height: 1fr; border: none; padding: 0; scrollbar-size-vertical: 1; }
    #lines:focus { border: none; }
    #wanted { height: 1; border: none; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("slash", "narrow", "narrow", priority=True),  # before what is typed next is given to the lines
        Binding("question_mark", "help", "keys"),
        Binding("q", "app.quit", "quit"),
        Binding("right", "open", show=False),
        Binding("left,backspace", "back", show=False),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, target: Target, view: View, way: tuple[str, ...]) -> None:
        super().__init__()
        self.target = target
        self.view = view
        self.way = (*way, view.name)
        self._shown: list[Drawn] = []

    def show(self, view: View) -> None:
        """Show what there is now of the same target."""
        self.view = view
        if self.is_current:  # others are drawn when they are come back to
            self._draw()

    def on_screen_resume(self) -> None:
        """What was read meanwhile is shown."""
        if self._shown:
            self._draw()

    def compose(self) -> ComposeResult:
        """See Textual."""
        yield Static(id="way", markup=False)
        yield Lines(id="lines", markup=False)
        yield Input(id="wanted", placeholder="words that a line must have")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The lines have the keys."""
        self._wanted.display = False
        self._wanted.cursor_blink = False  # nothing is written while nothing happens
        self.set_focus(self._lines)

    def on_resize(self, event: events.Resize) -> None:
        """Lines are made for the width of the terminal."""
        self.query_one("#way", Static).update(Text(fitted(self.way, max(event.size.width - _SIDES, 1))))
        self._draw()

    @property
    def _lines(self) -> Lines:
        return self.query_one("#lines", Lines)

    @property
    def _wanted(self) -> Input:
        return self.query_one("#wanted", Input)

    def _draw(self) -> None:
        """Draw the lines again, and stay at the line that was looked at if it is still there."""
        lines = self._lines
        at = lines.highlighted
        row = self._shown[at].row if at is not None and at < len(self._shown) else None
        self._shown = drawn(self.view, max(self.size.width - _BAR, 1), self._wanted.value)
        lines.clear_options()
        lines.add_options([Choice(one) for one in self._shown])
        rows = [number for number, one in enumerate(self._shown) if one.row is not None]
        same = next((number for number in rows if _is_same(self._shown[number].row, row)), None)
        lines.highlighted = self._first(rows) if same is None else same
        if same is None:
            self.call_after_refresh(lines.scroll_home, animate=False)

    def _first(self, rows: Sequence[int]) -> int | None:
        """The first line that leads somewhere, if it is on the first screen, else the very first."""
        height = 0
        for number, one in enumerate(self._shown):
            height += one.text.plain.count("\n") + 1
            if height > self._lines.size.height:
                break
            if one.row is not None and one.row.opens is not None:
                return number
        return rows[0] if rows else None

    @on(OptionList.OptionHighlighted)
    def _show_heading(self, event: OptionList.OptionHighlighted) -> None:
        """Above the first line that can be reached there may be a heading."""
        first = next((number for number, one in enumerate(self._shown) if one.row is not None), 0)
        if event.option_index == first:
            self._lines.scroll_home(animate=False)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click."""
        row = event.option.row if isinstance(event.option, Choice) else None
        if row is not None and row.opens is not None and isinstance(self.app, Walk):
            self.app.push_screen(Room(row.opens, self.app.rooms.view(row.opens), self.way))

    def action_open(self) -> None:
        """Open the line that is looked at."""
        self._lines.action_select()

    def action_down(self) -> None:
        """Go to the next line."""
        self._lines.action_cursor_down()

    def action_up(self) -> None:
        """Go to the line before."""
        self._lines.action_cursor_up()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Among the words that are asked for a / is a character."""
        return action != "narrow" or not self._wanted.has_focus

    def action_narrow(self) -> None:
        """Ask for words."""
        self._wanted.display = True
        self.set_focus(self._wanted)  # at once: what is typed next is no key of the lines

    @on(Input.Changed)
    def _narrow(self) -> None:
        self._draw()

    @on(Input.Submitted)
    def _narrowed(self) -> None:
        self._draw()
        self.set_focus(self._lines)

    def action_back(self) -> None:
        """Show all lines again; if they are shown, leave the screen."""
        if self._wanted.display:
            self._wanted.display = False
            self._wanted.value = ""
            self.set_focus(self._lines)
        elif len(self.app.screen_stack) > len(_BEGINNING):
            self.app.pop_screen()

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(Help())


def _is_same(one: Row | None, other: Row | None) -> bool:
    """Whether two rows are about the same, also where something came between."""
    if one is None or other is None:
        return False
    return one.opens == other.opens if one.opens is not None else one.cells == other.cells


_BEGINNING = ("the screen that Textual begins with", "the first room")
"""Screens that are never left by going back."""


class Walk(App[int]):
    """The program; it returns an exit code.

    Args:
        rooms: makes the views.
        growing: what is read again while it grows; None: nothing.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "wirelake open"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, rooms: Rooms, growing: Growing | None = None) -> None:
        super().__init__()
        self.rooms = rooms
        self._growing = growing
        self._is_reading = False

    def on_mount(self) -> None:
        """Begin with the first screen."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup SIGHUP stays ignored
                loop.add_signal_handler(number, self.exit, 128 + number)
        self.push_screen(Room(Start(), self.rooms.view(Start()), ()))
        if self._growing is not None:
            self.set_interval(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """Read again what has changed, while the screens stay as they are."""
        growing = self._growing
        if growing is None or self._is_reading or not growing.has_changed:
            return
        self._is_reading = True
        self.run_worker(partial(self._read, growing), thread=True, exit_on_error=False)

    def _read(self, growing: Growing) -> None:
        """The worker's thread."""
        try:
            source = growing.source()
        except UserError as error:  # what was read before stays
            if self.is_running:
                self.call_from_thread(self._end_reading, str(error))
        else:
            self.call_from_thread(self._take, source)

    def _end_reading(self, problem: str = "") -> None:
        self._is_reading = False
        if problem:
            self.notify(printable(problem), severity="warning", markup=False)

    def _take(self, source: Source) -> None:
        """Make all screens of what is there now."""
        self.rooms.replace(source)
        for screen in self.screen_stack:
            if isinstance(screen, Room):
                screen.show(self.rooms.view(screen.target))
        self._end_reading()

    def on_unmount(self) -> None:
        """A reading that is under way ends."""
        if self._growing is not None:
            self._growing.close()
