"""Which Java is found, with runtimes that are shell scripts answering as the real ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.setup import java
from pipeline.setup.java import find_java, inspect, parse_version

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
MODULES = "java.base@17.0.15\njdk.incubator.vector@17.0.15"


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_WELL_KNOWN", ())


def runtime(home: Path, version: str, modules: str = MODULES, exit_code: int = 0) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        f"#!/bin/sh\nif [ $1 = -version ]; then cat >&2 <<'X'\n{version}\nX\nelse cat <<'X'\n{modules}\nX\nfi\n"
        f"exit {exit_code}\n"
    )
    binary.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("output", "version"),
    [
        (OPENJDK_17, 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea"', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_major_version_is_read(output: str, version: int | None) -> None:
    assert parse_version(output) == version


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    chosen = runtime(tmp_path / "chosen", OPENJDK_17)
    on_path = runtime(tmp_path / "on_path", OPENJDK_17.replace("17", "21"))
    found = find_java({"JAVA_HOME": str(chosen), "PATH": f"{on_path / 'bin'}:/usr/bin:/bin"})
    assert found is not None
    assert (found.home, found.version, found.suitable, found.in_use) == (chosen, 17, True, True)


def test_a_link_on_the_path_leads_to_the_home(tmp_path: Path) -> None:
    home = runtime(tmp_path / "jvm", OPENJDK_17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = find_java({"PATH": str(tmp_path / "bin")})
    assert found is not None
    assert (found.home, found.in_use) == (home, True)


def test_a_suitable_one_beside_an_old_one_is_found_but_not_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = runtime(tmp_path / "old", 'java version "1.8.0_402"')
    new = runtime(tmp_path / "jvm" / "new", OPENJDK_17)
    monkeypatch.setattr(java, "_WELL_KNOWN", (f"{tmp_path}/jvm/*",))
    found = find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert found is not None
    assert (found.home, found.suitable, found.in_use) == (new, True, False)


def test_a_runtime_without_the_vector_module_does_not_suit(tmp_path: Path) -> None:
    found = inspect(runtime(tmp_path, OPENJDK_17, modules="java.base@17.0.15"), in_use=True)
    assert found is not None
    assert not found.suitable


def test_an_old_one_is_named_when_there_is_no_other(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(runtime(tmp_path, 'java version "1.8.0_402"')), "PATH": ""})
    assert found is not None
    assert (found.version, found.suitable) == (8, False)


def test_a_stub_that_fails_is_no_java(tmp_path: Path) -> None:
    stub = runtime(tmp_path, "Unable to locate a Java Runtime.", exit_code=1)
    assert find_java({"JAVA_HOME": str(stub), "PATH": ""}) is None
    assert find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""}) is None
