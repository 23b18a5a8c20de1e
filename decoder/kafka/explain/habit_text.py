"""Sentences about the habit of an encoder that breaks a message."""

from __future__ import annotations

from decoder.kafka.explain.habits import HEADER, Change, Found
from decoder.kafka.explain.repair import path_text
from decoder.model import Direction


def habit_text(found: Found, direction: Direction, version: str) -> str:
    """What is wrong and what makes the message whole.

    Args:
        found: the habit.
        direction: of the message.
        version: its api and version, e.g. ``Fetch v12``.
    """
    if found.habit.other_lengths:
        return _lengths_text(found, version)
    places = _places(found, direction)
    if found.habit.lacks_mark:
        return (
            f"The byte that says whether a value is null (01: it is not) is missing before {places}: {_whole(found)}."
        )
    if found.habit.adds_byte:
        return f"One byte 00 too many is {places}: without it {_whole(found)}."
    return f"The empty tag buffer (one byte 00) is missing {places}: with it {_whole(found)}."


def _whole(found: Found) -> str:
    return "with it the message decodes to its last byte" if found.habit.lacks_mark else (
        "the message decodes to its last byte"
    )  # fmt: skip


def _places(found: Found, direction: Direction) -> str:
    """The first place in full, and how many others there are."""
    first, others = found.changes[0], len(found.changes) - 1
    more = f" and at {others} other place{'' if others == 1 else 's'}" if others else ""
    return f"{_place(first, direction, is_before=bool(found.habit.lacks_mark))} (byte {first.start}){more}"


def _place(change: Change, direction: Direction, *, is_before: bool) -> str:
    if change.path == HEADER:
        return f"at the end of the {direction} header"
    if not change.path:
        return "at the end of the message"
    return path_text(change.path) if is_before else f"after {path_text(change.path)}"


def _lengths_text(found: Found, version: str) -> str:
    first = next(change for change in found.changes if change.is_length)
    is_compact = len(first.written) < first.end - first.start
    form, wanted = ("fixed", "compact") if is_compact else ("compact", "fixed")
    buffers = ""
    if found.habit.lacks_tags:
        buffers = ", and has no tag buffers"
    elif found.habit.adds_byte:
        buffers = ", and has tag buffers"
    return (
        f"The message writes its lengths in the {form} form (the first is that of {path_text(first.path)} at byte "
        f"{first.start}){buffers}; {version} wants the {wanted} one: with that the message decodes to its last byte."
    )
