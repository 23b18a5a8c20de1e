"""The ``wirelake`` program: mounts the commands; an error that a user can fix is a message and exit code 2."""

from __future__ import annotations

import errno
import gc
import os
import platform
import signal
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from pipeline.commands.on_demand import WITH_PANDAS, CommandsOnDemand
from pipeline.commands.without_pandas import without_pandas
from pipeline.errors import UserError
from pipeline.lake.permissions import restrict_files
from pipeline.setup.system import lacking_package
from pipeline.terminal.console import Console, log_to_terminal

app = typer.Typer(
    name="wirelake",
    cls=CommandsOnDemand,
    help="Turn captured Kafka and MongoDB traffic into findings and tables: what really happened on the wire?",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version  # noqa: PLC0415 - read when asked for

        typer.echo(f"wirelake {version('wirelake')}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _group(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version, and end.")
    ] = False,
) -> None:
    """What all commands begin with: nothing."""


_OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""As of the usual tools, which that signal ends; and not 0, since findings or failed checks may be unprinted."""

_NO_MEMORY = (
    "Cannot allocate memory", "failed to map segment from shared object", "out of memory", "can't start new thread",
)  # fmt: skip
"""What the loader of libraries, and what starts a thread, say without memory."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def search_less_for_garbage() -> None:
    """Let the collector look for circles of objects after 50,000 new ones instead of 700.

    What is read and judged are rows, hundreds of thousands of objects without circles: searching among them took up to
    a fourth of the time.
    """
    gc.set_threshold(50_000, 20, 20)


def main() -> None:
    """Run the program, which :mod:`wirelake.start` has found."""
    search_less_for_garbage()
    log_to_terminal()
    restrict_files("private")
    if WITH_PANDAS.isdisjoint(sys.argv[1:2]):
        without_pandas()
    try:
        app()
    except UserError as error:
        _print_error(str(error))
        raise SystemExit(2) from None
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        # The reader of our output went away, e.g. `| head`; click and rich made an error of it.
        _discard_output()
        raise SystemExit(_OUTPUT_CLOSED) from None
    except BrokenPipeError:
        _discard_output()
        raise SystemExit(_OUTPUT_CLOSED) from None
    except ModuleNotFoundError as error:
        lacking_one = lacking_package(error, "this")
        if lacking_one is None:
            raise
        _print_error(lacking_one)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        lacking = _lacking(error)
        if lacking is None:
            raise
        _discard_output()
        _print_error(lacking)
        raise SystemExit(2) from None


def _lacking(error: Exception) -> str | None:
    """What the machine lacks, in a sentence; None: it is not that."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return f"cannot write: {error.strerror}"
    if any(map(_is_of_memory, _chain(error))):
        return "out of memory. Read a shorter time or fewer files, or give the process more memory."
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it was raised from or while handling: a library may hide why it cannot be loaded."""
    seen: list[BaseException] = []
    while error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__ or error


def _is_of_memory(error: BaseException) -> bool:
    # That of DuckDB, which is loaded only where it is needed, is no MemoryError.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, ImportError | OSError | RuntimeError) and any(sign in str(error) for sign in _NO_MEMORY)


def _print_error(message: str) -> None:
    Console(stderr=True).print(Text(f"error: {message}", "bold red"), soft_wrap=True)


def _discard_output() -> None:
    """What still waits to be written would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
