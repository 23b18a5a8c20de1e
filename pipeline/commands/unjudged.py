"""Sentences for what was not judged: steps that failed, and captures that nothing can be concluded from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from pipeline.analysis.guard import InternalError
from pipeline.lines import many
from pipeline.terminal import Console

_SHOWN = 10


def error_sentences(errors: Sequence[InternalError]) -> list[str]:
    """Failures of steps for a person; the last sentence says what to do."""
    if not errors:
        return []
    shown = [str(error) for error in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        shown.append(f"{many(len(errors) - _SHOWN, 'more failure')} of steps")
    if all(error.is_excess for error in errors):
        return [*shown, "the other rules have judged everything; judge a shorter time to get these, too"]
    return [*shown, "everything else was judged. Please report this: it is a fault of Wirelake"]


def warn_of_errors(errors: Sequence[InternalError], console: Console) -> bool:
    """Print failures on standard error; True if there were any."""
    for sentence in error_sentences(errors):
        console.print(Text(f"warning: {sentence}", "yellow"), soft_wrap=True)
    return bool(errors)
