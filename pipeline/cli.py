"""The ``wirelake`` program: mounts the commands; an error that a user can mend is a message and exit code 2."""

from __future__ import annotations

import os
import sys

import typer
from rich.console import Console
from rich.text import Text

from pipeline.capture.cli import capture_app
from pipeline.commands.decode import decode
from pipeline.commands.demo import demo
from pipeline.commands.doctor import doctor
from pipeline.commands.explain import explain
from pipeline.commands.findings import findings
from pipeline.commands.lake import backfill, check, maintain, stream
from pipeline.commands.sql import sql
from pipeline.errors import UserError

app = typer.Typer(
    name="wirelake",
    help="Captured Kafka traffic as Delta tables that answer: what really happened on the wire?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(capture_app, name="capture")
for command in (decode, explain, stream, check, findings, sql, backfill, maintain, demo, doctor):
    app.command()(command)


def main() -> None:
    """Run the program; the console script of the distribution."""
    try:
        app()
    except UserError as error:
        Console(stderr=True).print(Text(f"error: {error}", "bold red"), soft_wrap=True)
        raise SystemExit(2) from None
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
