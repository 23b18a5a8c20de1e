"""The doctor: sound here, and for each lack the command that fixes it."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pipeline.commands import doctor
from pipeline.setup.jars import DELTA_JARS, JarError
from pipeline.setup.java import Java
from pipeline.setup.system import how_to_install

app = typer.Typer()
app.command()(doctor.doctor)


def run() -> tuple[int, dict[str, dict[str, Any]]]:
    done = CliRunner().invoke(app, ["--json"])
    return done.exit_code, {c["name"]: c for c in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(autouse=True)
def _sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda: Java(Path("/jvm"), 17, has_vector=True, in_use=True))
    monkeypatch.setattr(doctor, "install_command", lambda tool: f"get {tool.command}")


def test_a_sound_machine() -> None:
    code, checks = run()
    assert code == 0
    assert [name for name, check in checks.items() if check["required"] and not check["ok"]] == []
    assert {"Python", "Java", "pyspark", "delta-spark", "Delta jars", "tcpdump", "memory", "disk"} <= set(checks)


@pytest.mark.parametrize("java", [None, Java(Path("/jvm"), 11, has_vector=False, in_use=True)])
def test_no_suitable_java(java: Java | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda: java)
    code, checks = run()
    assert code == 2
    assert (checks["Java"]["ok"], checks["Java"]["fix"]) == (False, "get java")


def test_a_java_that_is_not_in_use_is_shown_with_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda: Java(Path("/jvm"), 17, has_vector=True, in_use=False))
    code, checks = run()
    assert code == 0
    assert "export JAVA_HOME=/jvm" in checks["Java"]["detail"]


def test_versions_that_do_not_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda name: "4.2.1" if name == "pyspark" else "4.4.0")
    code, checks = run()
    assert code == 2
    assert checks["pyspark"]["fix"] == "pip install pyspark==4.2.0"


def test_damaged_or_missing_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "unfit_jars", lambda _: list(DELTA_JARS))
    code, checks = run()
    assert code == 2
    assert DELTA_JARS[0].file_name in checks["Delta jars"]["detail"]
    assert checks["Delta jars"]["fix"] == "wirelake setup"

    def absent() -> Path:
        raise JarError("pyspark is not installed")

    monkeypatch.setattr(doctor, "spark_jars_dir", absent)
    assert run()[0] == 2


def test_missing_test_tools_are_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    code, checks = run()
    assert code == 0
    assert (checks["tshark"]["ok"], checks["tshark"]["fix"]) == (False, "get tshark")


def test_without_the_web_page_the_rest_works(monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.version

    def version(name: str) -> str:
        if name == "streamlit":
            raise doctor.PackageNotFoundError
        return found(name)

    monkeypatch.setattr(doctor, "version", version)
    code, checks = run()
    assert code == 0
    assert (checks["streamlit"]["ok"], checks["streamlit"]["required"]) == (False, False)
    assert checks["streamlit"]["fix"].startswith("pip install '.[dashboard]' in the checkout")


def test_a_person_reads_a_table() -> None:
    done = CliRunner().invoke(app, [], env={"COLUMNS": "160"})
    assert done.exit_code == 0
    assert "Everything that is required is here." in done.stdout


@pytest.mark.parametrize(("user", "may"), [(0, True), (1000, False)])
def test_the_right_to_capture(user: int, may: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tcpdump"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: user)
    code, checks = run()
    assert code == 0
    assert checks["right to capture"]["ok"] is may
    assert checks["right to capture"]["fix"] == f"sudo setcap cap_net_raw=eip {program}"


def test_the_command_that_installs_an_extra_is_printed_as_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", gone)
    monkeypatch.setenv("COLUMNS", "200")
    printed = CliRunner().invoke(app, []).stdout
    for extra in ("spark", "quality", "sql", "dashboard"):
        assert f"pip install '.[{extra}]' in the checkout" in printed


def test_where_the_job_was_not_installed_nothing_of_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor.version

    def version(name: str) -> str:
        if name in ("pyspark", "delta-spark", "great-expectations", "deltalake"):
            raise PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(doctor, "in_checkout", lambda: False)
    monkeypatch.setattr(doctor, "find_java", lambda: None)
    monkeypatch.setattr(doctor, "unfit_jars", lambda _: list(DELTA_JARS))
    code, checks = run()
    assert code == 0
    assert checks["pyspark"]["detail"] == "not installed; needed for the Spark job"
    assert "mvn" not in checks, "a tool of the tests"


def test_who_installed_the_wheel_has_no_checkout(tmp_path: Path) -> None:
    assert how_to_install("spark,quality", tmp_path) == "pip install 'wirelake[spark,quality]'"
    (tmp_path / "pyproject.toml").touch()
    assert how_to_install("sql", tmp_path) == "pip install '.[sql]' in the checkout"
