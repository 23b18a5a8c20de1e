"""The package ``wirelake``: quick to import, documented with examples that run, and plain about what it lacks."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wirelake
from tests.paths import CAPTURES, ROOT

_HEAVY = {"altair", "decoder", "deltalake", "duckdb", "numpy", "pandas", "pipeline", "pyarrow", "pydantic", "pyspark"}


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_importing_it_loads_nothing(tmp_path: Path) -> None:
    done = run("import sys; import wirelake; print(*{name.partition('.')[0] for name in sys.modules})", tmp_path)
    assert "wirelake" in done.stdout.split()
    assert _HEAVY.isdisjoint(done.stdout.split())


def test_each_name_is_there() -> None:
    assert {name: getattr(wirelake, name).__name__ for name in wirelake.__all__} == {
        name: name for name in wirelake.__all__
    }
    assert set(wirelake.__all__) <= set(dir(wirelake))
    with pytest.raises(AttributeError, match="module 'wirelake' has no attribute 'no_such_name'"):
        wirelake.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("altair", "offsets_chart", "dashboard"), ("deltalake", "query", "sql"), ("deltalake", "group_chart", "sql")],
)
def test_a_missing_extra_is_a_sentence(package: str, name: str, extra: str, tmp_path: Path) -> None:
    done = run(f"import sys; sys.modules[{package!r}] = None\nfrom wirelake import {name}", tmp_path)
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"ImportError: wirelake.{name} needs {package}, which is not installed: pip install '")
    assert f"[{extra}]" in sentence


@pytest.mark.slow
def test_what_is_missing_in_a_call_is_a_sentence_too(tmp_path: Path) -> None:
    capture = str(CAPTURES / "version_negotiation.pcap")
    code = f"import wirelake; wirelake.diagnose({capture!r}, lake='lake')"
    done = run(f"import sys; sys.modules['deltalake'] = None\n{code}", tmp_path)
    assert done.stderr.splitlines()[-1].startswith("ImportError: wirelake.diagnose needs deltalake, which is not")


@pytest.mark.parametrize("name", ["pipeline", "decoder"])
def test_a_module_of_the_same_name_is_named_and_left_alone(name: str, tmp_path: Path) -> None:
    mine = tmp_path / f"{name}.py"
    mine.write_text("ANSWER = 42\n")
    refused = run("import wirelake; wirelake.Codec", tmp_path)
    assert refused.stderr.splitlines()[-1].startswith(
        f"ImportError: {mine} is in the way of Wirelake's own package `{name}`. Rename it, "
    )
    loaded = run(f"import {name}, sys; del sys.path[0]\nimport wirelake; wirelake.Codec", tmp_path)
    assert f"ImportError: {mine} is in the way of" in loaded.stderr
    assert run(f"import wirelake, {name}; print({name}.ANSWER)", tmp_path).stdout == "42\n"


@pytest.mark.slow
def test_the_examples_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "captures").symlink_to(CAPTURES)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "reference" / "python.md"
    ran = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (ran.failed, ran.attempted > 8) == (0, True)
    assert (tmp_path / "offsets.html").stat().st_size > 10_000


def test_each_function_has_an_example_or_says_what_it_takes() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    parts = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
    assert list(parts) == wirelake.__all__
    assert [name for name, text in parts.items() if name.islower() and "| argument | what |" not in text] == []


class TestDiagnose:
    def test_a_lake_of_it_is_there_for_queries(self, tmp_path: Path) -> None:
        found = wirelake.diagnose(CAPTURES / "version_negotiation.pcap", lake=tmp_path / "lake")
        rows = wirelake.query(tmp_path / "lake", "SELECT count(*) AS n FROM silver.exchanges").to_pylist()
        assert rows == [{"n": found.tables["silver.exchanges"].num_rows}]
        assert rows[0]["n"] > 0

    def test_what_is_missing_is_warned_of(self, tmp_path: Path) -> None:
        whole = (CAPTURES / "version_negotiation.pcap").read_bytes()
        (tmp_path / "cut.pcap").write_bytes(whole[: len(whole) * 2 // 3])
        with pytest.warns(wirelake.IncompleteWarning, match=r"cut\.pcap") as warned:
            found = wirelake.diagnose(tmp_path / "cut.pcap")
        assert warned[0].filename == __file__
        assert found.tables["bronze.frames"].num_rows > 0

    def test_what_cannot_be_used_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(wirelake.UserError, match="name at least one capture"):
            wirelake.diagnose()
        with pytest.raises(wirelake.UserError, match=r"none\.pcap"):
            wirelake.diagnose(tmp_path / "none.pcap")
        (tmp_path / "file").touch()
        with pytest.raises(wirelake.UserError, match="not empty"):
            wirelake.diagnose(CAPTURES / "version_negotiation.pcap", lake=tmp_path)
