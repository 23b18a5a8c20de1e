"""``python -m pipeline.setup``: what it installs, what it only prints, and when it ends with 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.setup import __main__ as setup
from pipeline.setup.jars import JarError
from pipeline.setup.java import Java
from tests.pipeline.setup.machine import TOOLS, Machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    fake = Machine()
    fake.stand_in(setup, monkeypatch)
    monkeypatch.setattr(setup, "install_jars", list)
    return fake


def test_nothing_to_do_is_silent(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main() == 0
    assert capsys.readouterr().out == ""
    assert machine.installed == []


def test_root_on_debian_gets_what_is_missing(machine: Machine) -> None:
    machine.java, machine.tools = None, {TOOLS[0]}
    assert setup.main() == 0
    assert machine.installed == [["java", *TOOLS[1:]]]


def test_without_java_it_ends_with_the_command(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.java, machine.may_install = Java(Path("/jvm"), 11, has_vector=False, in_use=True), False
    assert setup.main() == 2
    assert "install" in capsys.readouterr().out.splitlines()[-1]
    assert machine.installed == []


def test_missing_test_tools_are_noted_only(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.tools, machine.may_install = set(), False
    assert setup.main() == 0
    assert [line.split(";")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"Note: no {command}" for command in TOOLS
    ]


def test_another_java_in_use_is_reported(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.java = Java(Path("/jvm"), 17, has_vector=True, in_use=False)
    assert setup.main() == 0
    assert "export JAVA_HOME=/jvm" in capsys.readouterr().out


@pytest.mark.usefixtures("machine")
def test_jars_that_cannot_be_had_end_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise JarError("cannot download it")

    monkeypatch.setattr(setup, "install_jars", refuse)
    assert setup.main() == 2
    assert "cannot download it" in capsys.readouterr().out
