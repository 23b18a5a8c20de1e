"""A lake that cannot be read is a sentence and exit code 2, whatever of it is missing, damaged or forbidden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.lake.path_checks import why_unreadable
from tests.paths import CAPTURES, ROOT

pytestmark = pytest.mark.slow

COMMANDS = [
    ("findings",),
    ("findings", "--json"),
    ("tables",),
    ("sql", "FROM gold.findings SELECT count(DISTINCT rule)"),
]
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
"""What makes permissions count for root, too."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("good") / "lake"
    CliRunner().invoke(app, ["diagnose", str(CAPTURES / "stuck_commit.pcap"), "--lake", str(lake)])
    return lake


@pytest.fixture
def lake(good: Path, tmp_path: Path) -> Iterator[Path]:
    copy = Path(shutil.copytree(good, tmp_path / "above" / "lake"))
    yield copy
    subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path)], check=True)


FINDINGS = Path("gold") / "findings"
LOG = FINDINGS / "_delta_log"


def a_file(lake: Path, where: Path, ending: str) -> Path:
    return next(file for file in (lake / where).iterdir() if file.name.endswith(ending))


@pytest.mark.parametrize(
    "part",
    [
        lambda lake: lake.parent, lambda lake: lake, lambda lake: lake / "gold", lambda lake: lake / FINDINGS,
        lambda lake: lake / LOG, lambda lake: a_file(lake, FINDINGS, ".parquet"),
        lambda lake: a_file(lake, LOG, ".json"),
    ],
    ids=["above", "lake", "schema", "table", "log", "file", "log file"],
)  # fmt: skip
def test_what_may_not_be_read_is_named(lake: Path, part: Callable[[Path], Path]) -> None:
    forbidden = part(lake)
    forbidden.chmod(0)
    before = AS_OTHERS if os.geteuid() == 0 else []
    for name, *more in COMMANDS:
        command = [*before, sys.executable, "-m", "pipeline.cli", name, *more, "--lake", str(lake)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 2, done.stderr
        assert "cannot read" in done.stderr
        assert "permission denied. Run as" in done.stderr
        assert "Traceback" not in done.stderr
        assert "there is no lake" not in done.stderr


def damage(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda lake: damage(a_file(lake, FINDINGS, ".parquet")), "cannot read"),
        (lambda lake: a_file(lake, FINDINGS, ".parquet").unlink(), "cannot read"),
        (lambda lake: a_file(lake, LOG, ".json").write_text('{"add":'), "cannot read"),
        (lambda lake: shutil.rmtree(lake / LOG), "no log (_delta_log): it was written in part, or damaged"),
    ],
    ids=["damaged", "gone", "log damaged", "without a log"],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_damaged_is_named(
    lake: Path, harm: Callable[[Path], None], words: str, command: tuple[str, ...]
) -> None:
    harm(lake)
    name, *more = command
    done = CliRunner().invoke(app, [name, *more, "--lake", str(lake)])
    if name == "tables":
        assert done.exit_code == 2
        assert words in done.stderr
        return
    assert isinstance(done.exception, UserError)
    assert words in str(done.exception)
    assert "did you mean" not in str(done.exception)
    assert "wirelake tables" not in str(done.exception)


def test_a_lake_of_diagnose_that_lost_its_findings_is_not_sent_to_stream(lake: Path) -> None:
    shutil.rmtree(lake / "gold")
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake)])
    assert "is damaged: its findings are gone" in str(done.exception)


def test_a_folder_that_can_be_read_or_is_not_there_is_not_called_forbidden(tmp_path: Path) -> None:
    assert why_unreadable(tmp_path) == ""
    assert why_unreadable(tmp_path / "missing") == ""
