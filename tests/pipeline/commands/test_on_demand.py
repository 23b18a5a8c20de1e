"""A command loads nothing that only others need; the overview lists the commands themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands.extras import NEEDED
from pipeline.commands.on_demand import MODULES
from tests.paths import CAPTURES

pytestmark = pytest.mark.slow

HEAVY = ("duckdb", "deltalake", "numpy", "pandas", "pyarrow", "pyspark", "streamlit", "textual")
LOADED = """
import sys
from typer.testing import CliRunner
from pipeline.cli import app
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code in (0, 2), result.output
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("arguments", [("--help",), ("doctor", "--help"), ("no-such-command",)])
def test_what_is_not_needed_is_not_loaded(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments).isdisjoint(HEAVY)


PANDAS = """
import atexit, sys
from pipeline.cli import main
atexit.register(lambda: print(bool({"pandas", "textual"} & sys.modules.keys()), file=sys.stderr))
main()
"""


def test_what_needs_no_java_needs_no_pandas_and_no_screens(tmp_path: Path) -> None:
    capture = str(CAPTURES / "version_negotiation.pcap")
    for arguments in (
        ("diagnose", capture, "--lake", "lake"),
        ("top", capture, "--once"),
        ("capture", "read", capture, "--landing", "landing"),
        ("findings", "--lake", "lake"),
        ("sql", "--lake", "lake", "FROM gold.findings"),
        ("tables", "--lake", "lake"),
    ):
        command = [sys.executable, "-c", PANDAS, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        assert done.stderr.splitlines()[-1] == "False", arguments


def test_the_overview_describes_each_command_as_the_command_does() -> None:
    context = typer.Context(typer.main.get_command(app))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.splitlines()
    for name in MODULES:
        command = context.command.get_command(context, name)  # type: ignore[attr-defined]
        [line] = [line for line in shown if line.startswith(f"  {name} ")]
        assert line.split()[1:4] == command.get_short_help_str(60).split()[:3]


NOT_INSTALLED = """
import sys
for name in ("deltalake", "pyspark", "delta", "streamlit", "altair", "great_expectations", "textual"):
    sys.modules[name] = None
from pipeline.cli import main
main()
"""


def without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", NOT_INSTALLED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["diagnose", "decode", "top --once", "explain --frame 1"])
def test_a_capture_is_read_by_what_is_always_installed(command: str) -> None:
    name, *options = command.split()
    done = without_extras(name, str(CAPTURES / "version_negotiation.pcap"), *options)
    assert done.stdout
    assert done.stderr.replace("warning: cut off: 1 message whose end was not captured\n", "") == ""


@pytest.mark.parametrize(
    ("command", "package", "extras"),
    [
        ("findings --lake x", "deltalake", "sql"),
        ("open x", "textual", "open"),
        ("notify --lake x --to http://localhost/", "deltalake", "sql"),
        ("sql --lake x FROM", "deltalake", "sql"),
        ("dashboard --lake x", "streamlit", "dashboard"),
        ("stream --landing x --lake x", "pyspark", "spark"),
        ("maintain --lake x", "pyspark", "spark"),
        ("backfill --lake x --from 2026-01-01 --to 2026-01-01", "pyspark", "spark"),
        ("check --lake x", "pyspark", "spark,quality"),
        ("demo", "pyspark", "spark,quality"),
        ("setup", "pyspark", "spark"),
    ],
)
def test_what_is_not_installed_is_named(command: str, package: str, extras: str) -> None:
    name = command.split(maxsplit=1)[0]
    done = without_extras(*command.split())
    assert done.returncode == 2
    assert done.stderr == (
        f"error: `wirelake {name}` needs {package}, which is not installed: pip install '.[{extras}]' in the checkout\n"
    )
    assert without_extras(name, "--help").returncode == 0, "help needs nothing"


def test_each_command_that_needs_an_extra_exists() -> None:
    assert NEEDED.keys() <= MODULES.keys()


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    result = CliRunner().invoke(app, ["decod"])
    assert result.exit_code == 2
    assert "Did you mean 'decode'" in result.output
