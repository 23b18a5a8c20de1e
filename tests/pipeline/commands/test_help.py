"""What the help and errors about options say: words for what to give, exit codes, and how to get there."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
import typer
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands.on_demand import MODULES
from pipeline.errors import UserError
from pipeline.terminal.examples import with_examples

COMMANDS = [*(name for name in MODULES if name != "capture"), "capture read", "capture live"]
TYPES = re.compile(r"<\w+|list\[|float range|int range|%Y|\[default: \(|<str>")


def help_of(*command: str) -> str:
    done = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_what_to_give_how_it_ends_and_how_it_is_used(command: str) -> None:
    text = help_of(*command.split())
    assert TYPES.search(text) is None
    assert f"      wirelake {command}" in text or f"    wirelake {command}" in text
    assert re.search(r"exit code", text, re.IGNORECASE)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_fit_80_columns_and_can_be_pasted(command: str) -> None:
    text = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"}).output
    assert [line for line in text.splitlines() if len(line) > 80] == []
    examples = re.search(r"^  Examples?:\n(.*?)^(?:Arguments|Options):", text, re.MULTILINE | re.DOTALL)
    assert examples
    typed = [one for one in examples[1].split("\n\n") if "wirelake " in one]
    assert all("wirelake" in shlex.split(one.replace("\\\n", " "), comments=True) for one in typed)
    assert subprocess.run(["bash", "-n"], input="\n".join(typed), text=True, check=False).returncode == 0


def test_a_long_example_goes_on_behind_a_backslash() -> None:
    text = with_examples(
        "What it does.\n\nExamples:\n\n  wirelake x --json --group billing --topic payments --client billing-1 --until "
        "04:46:08 | jq 'select(.a == \"b c\")'    # why\n\n  Words of ours."
    )
    assert text == (
        "What it does.\n\nExamples:\n\n\b\n  # why\n"
        "  wirelake x --json --group billing --topic payments --client billing-1 \\\n"
        "      --until 04:46:08 \\\n      | jq 'select(.a == \"b c\")'\n\n  Words of ours."
    )


def test_of_capture_there_are_examples() -> None:
    assert "wirelake capture read incident.pcap --landing landing" in help_of("capture")


@pytest.mark.parametrize("command", ["", "capture", *COMMANDS])
def test_the_short_form_is_known(command: str) -> None:
    assert (
        CliRunner().invoke(app, [*command.split(), "-h"]).output
        == CliRunner().invoke(app, [*command.split(), "--help"]).output
    )


def test_help_as_a_command_leads_to_the_option() -> None:
    error = CliRunner().invoke(app, ["help", "decode"]).exception
    assert isinstance(error, UserError)
    assert "wirelake COMMAND --help" in str(error)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("sql x --format xml", "'--format': 'xml' is not one of 'table', 'json'"),
        ("sql x --rows many", "'--rows': give a whole number"),
        ("sql x --rows 0", "'--rows': give at least 1"),
        ("top x --every soon", "'--every': give a number"),
        ("dashboard --port 99999", "'--port': give at most 65535"),
        ("backfill --from today --to 2026-11-21", "'--from': 'today' is no day: write it as 2026-11-21"),
        ("capture read x --landing l --payload all", "'--payload': 'all' is not one of 'lengths'"),
    ],
)
def test_a_value_that_is_not_taken_is_told_in_plain_words(arguments: str, told: str) -> None:
    done = CliRunner().invoke(app, arguments.split(), env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert told in done.output


def test_every_option_is_plain() -> None:
    root = typer.main.get_command(app)
    context = typer.Context(root)
    command = root.get_command(context, "findings")  # type: ignore[attr-defined]
    assert {param.name: param.metavar for param in command.params if not param.is_flag} == {
        "lake": "DIR", "rule": "NAME", "severity": "TEXT",
    }  # fmt: skip
