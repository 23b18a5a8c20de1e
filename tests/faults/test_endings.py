"""Commands that need no JVM end as they should, also after the last output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.endings import COMMANDS, main, repeat, small_lake

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "runs"), [(name, 4 if name == "findings --json" else 1) for name in COMMANDS])
def test_each_command_ends_as_it_should(name: str, runs: int, tmp_path: Path) -> None:
    endings = repeat(COMMANDS[name], small_lake(tmp_path), runs)
    assert endings.counts.total() == runs
    assert (endings.bad, endings.differing) == (0, 0), str(endings)


def test_a_wrong_ending_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "1", "--only", "findings", "--lake", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().out == "findings: exit 2: 1; wrong endings: 1, other output: 1\n"
