"""``wirelake setup``: the jars only, unless --system asks for packages, which are listed first."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pipeline.commands import setup
from pipeline.errors import UserError
from pipeline.setup.jars import DELTA_JARS, Jar, JarError
from tests.pipeline.setup.machine import Machine

app = typer.Typer()
app.command()(setup.setup)


class Lacking(Machine):
    """A machine whose Spark lacks Delta's jars."""

    def __init__(self) -> None:
        super().__init__()
        self.jars: list[Jar] = list(DELTA_JARS)
        self.downloaded: list[Jar] = []

    def install_jars(self, _folder: Path) -> list[Jar]:
        self.downloaded, self.jars = self.jars, []
        return self.downloaded


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Lacking:
    fake = Lacking()
    fake.stand_in(setup, monkeypatch)
    monkeypatch.setattr(setup, "offered", lambda names: names[0])
    monkeypatch.setattr(setup, "spark_jars_dir", lambda: Path("/spark/jars"))
    monkeypatch.setattr(setup, "unfit_jars", lambda _: fake.jars)
    monkeypatch.setattr(setup, "install_jars", fake.install_jars)
    return fake


def test_it_downloads_the_jars_and_installs_no_package(machine: Lacking) -> None:
    machine.tools = set()
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0, done.output
    assert machine.downloaded == list(DELTA_JARS)
    assert machine.installed == []


def test_a_second_run_downloads_nothing(machine: Lacking) -> None:
    machine.jars = []
    assert "in place" in CliRunner().invoke(app, []).output
    assert machine.downloaded == []


def test_packages_are_listed_and_asked_for(machine: Lacking) -> None:
    machine.java, machine.tools = None, {"tcpdump"}
    refused = CliRunner().invoke(app, ["--system"], input="n\n")
    assert "openjdk-17-jre-headless, for Spark" in refused.output
    assert "tshark, for decrypting TLS" in refused.output
    assert machine.installed == []
    assert isinstance(refused.exception, UserError), "Java is still missing"
    agreed = CliRunner().invoke(app, ["--system"], input="y\n")
    assert agreed.exit_code == 0, agreed.output
    assert machine.installed == [["java", "tshark"]]


def test_yes_asks_nothing(machine: Lacking) -> None:
    machine.java = None
    assert CliRunner().invoke(app, ["--system", "--yes"]).exit_code == 0
    assert machine.installed == [["java"]]


def test_who_may_not_install_packages_gets_the_commands(machine: Lacking) -> None:
    machine.java, machine.may_install = None, False
    done = CliRunner().invoke(app, ["--system"])
    assert isinstance(done.exception, UserError)
    assert "openjdk" in str(done.exception)


def test_without_pyspark_it_names_the_extra(machine: Lacking, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise JarError("pyspark is not installed: pip install 'wirelake[spark]'")

    monkeypatch.setattr(setup, "spark_jars_dir", absent)
    done = CliRunner().invoke(app, [])
    assert isinstance(done.exception, UserError)
    assert "pip install 'wirelake[spark]'" in str(done.exception)


def test_a_folder_of_another_user_is_a_sentence(machine: Lacking, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_folder: Path) -> list[Jar]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(setup, "install_jars", refused)
    done = CliRunner().invoke(app, [])
    assert isinstance(done.exception, UserError)
    assert "cannot write /spark/jars: Permission denied" in str(done.exception)
