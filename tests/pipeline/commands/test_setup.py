"""``wirelake setup``: the jars only, unless --system asks for packages, which are listed first."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pipeline.commands import setup
from pipeline.errors import UserError
from pipeline.setup import system
from pipeline.setup.jars import DELTA_JARS, Jar, JarError
from pipeline.setup.java import Java
from pipeline.setup.system import Tool

app = typer.Typer()
app.command()(setup.setup)
GOOD = Java(Path("/jvm"), 17, has_vector=True, in_use=True)


class Machine:
    """What the machine has, and what was done to it."""

    def __init__(self) -> None:
        self.java: Java | None = GOOD
        self.tools = {"tcpdump", "tshark"}
        self.jars: list[Jar] = list(DELTA_JARS)
        self.may_install = True
        self.packages: list[str] = []
        self.downloaded: list[Jar] = []

    def apt_install(self, tools: list[Tool]) -> bool:
        self.packages += [tool.command for tool in tools]
        self.java = GOOD
        return True

    def install_jars(self, _folder: Path) -> list[Jar]:
        self.downloaded, self.jars = self.jars, []
        return self.downloaded


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    fake = Machine()
    for module in (setup, system):
        monkeypatch.setattr(module, "find_java", lambda: fake.java)
    monkeypatch.setattr(system.shutil, "which", lambda command: command if command in fake.tools else None)
    monkeypatch.setattr(setup, "may_install", lambda: fake.may_install)
    monkeypatch.setattr(setup, "apt_install", fake.apt_install)
    monkeypatch.setattr(setup, "offered", lambda names: names[0])
    monkeypatch.setattr(setup, "spark_jars_dir", lambda: Path("/spark/jars"))
    monkeypatch.setattr(setup, "unfit_jars", lambda _: fake.jars)
    monkeypatch.setattr(setup, "install_jars", fake.install_jars)
    return fake


def test_it_downloads_the_jars_and_installs_no_package(machine: Machine) -> None:
    machine.tools = set()
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0, done.output
    assert machine.downloaded == list(DELTA_JARS)
    assert machine.packages == []


def test_a_second_run_downloads_nothing(machine: Machine) -> None:
    machine.jars = []
    assert "in place" in CliRunner().invoke(app, []).output
    assert machine.downloaded == []


def test_packages_are_listed_and_asked_for(machine: Machine) -> None:
    machine.java, machine.tools = None, {"tcpdump"}
    refused = CliRunner().invoke(app, ["--system"], input="n\n")
    assert "openjdk-17-jre-headless, for Spark" in refused.output
    assert "tshark, for decrypting TLS" in refused.output
    assert machine.packages == []
    assert isinstance(refused.exception, UserError), "Java is still missing"
    agreed = CliRunner().invoke(app, ["--system"], input="y\n")
    assert agreed.exit_code == 0, agreed.output
    assert machine.packages == ["java", "tshark"]


def test_yes_asks_nothing(machine: Machine) -> None:
    machine.java = None
    assert CliRunner().invoke(app, ["--system", "--yes"]).exit_code == 0
    assert machine.packages == ["java"]


def test_who_may_not_install_packages_gets_the_commands(machine: Machine) -> None:
    machine.java, machine.may_install = None, False
    done = CliRunner().invoke(app, ["--system"])
    assert isinstance(done.exception, UserError)
    assert "openjdk" in str(done.exception)


def test_without_pyspark_it_names_the_extra(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise JarError("pyspark is not installed: pip install 'wirelake[spark]'")

    monkeypatch.setattr(setup, "spark_jars_dir", absent)
    done = CliRunner().invoke(app, [])
    assert isinstance(done.exception, UserError)
    assert "pip install 'wirelake[spark]'" in str(done.exception)


def test_a_folder_of_another_user_is_a_sentence(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_folder: Path) -> list[Jar]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(setup, "install_jars", refused)
    done = CliRunner().invoke(app, [])
    assert isinstance(done.exception, UserError)
    assert "cannot write /spark/jars: Permission denied" in str(done.exception)
