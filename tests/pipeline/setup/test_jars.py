"""The Delta jars: pinned to the wheel's version, checked by hash, fetched only when needed."""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from pathlib import Path

import pytest

from pipeline.setup import jars
from pipeline.setup.jars import DELTA_JARS, Jar, JarError, install_jars, spark_jars_dir, unfit_jars

GOOD = b"the jar's bytes"
JAR = Jar("org.example", "thing", "1.0", hashlib.sha256(GOOD).hexdigest())


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was downloaded; each download gives the right bytes."""
    asked: list[str] = []

    def fetch(jar: Jar, _jars_dir: Path, work: Path) -> Path:
        asked.append(jar.coordinates)
        (work / jar.file_name).write_bytes(GOOD)
        return work / jar.file_name

    monkeypatch.setattr(jars, "_fetch", fetch)
    return asked


def test_this_environment_has_the_pinned_jars() -> None:
    assert unfit_jars(spark_jars_dir()) == []


def test_jars_and_wheels_belong_together() -> None:
    assert {jar.version for jar in DELTA_JARS} == {version("delta-spark")}
    spark = ".".join(version("pyspark").split(".")[:2])
    assert f"delta-spark_{spark}_2.13" in {jar.artifact for jar in DELTA_JARS}


def test_a_missing_jar_is_fetched_once(tmp_path: Path, served: list[str]) -> None:
    assert install_jars(tmp_path, [JAR]) == [JAR]
    assert install_jars(tmp_path, [JAR]) == []
    assert served == ["org.example:thing:1.0"]
    assert [path.name for path in tmp_path.iterdir()] == ["thing-1.0.jar"]


def test_every_user_can_read_what_one_installed_for_all(tmp_path: Path, served: list[str]) -> None:
    before = os.umask(0o077)
    try:
        install_jars(tmp_path, [JAR])
    finally:
        os.umask(before)
    assert (tmp_path / JAR.file_name).stat().st_mode & 0o777 == 0o644
    assert served


def test_a_damaged_jar_is_fetched_again(tmp_path: Path, served: list[str]) -> None:
    (tmp_path / JAR.file_name).write_bytes(GOOD[:-1])
    assert install_jars(tmp_path, [JAR]) == [JAR]
    assert unfit_jars(tmp_path, [JAR]) == []
    assert len(served) == 1


@pytest.mark.usefixtures("served")
def test_other_bytes_than_the_pinned_ones_are_not_installed(tmp_path: Path) -> None:
    other = Jar("org.example", "thing", "1.0", "0" * 64)
    with pytest.raises(JarError, match=r"pinned is 0{64}: not installed"):
        install_jars(tmp_path, [other])
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_fails_is_reported_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "spark_jars_dir", lambda: tmp_path)  # no Ivy there
    monkeypatch.setenv("PATH", "")  # and no Maven
    with pytest.raises(JarError, match=r"cannot download org\.example:thing:1\.0; check the network, or put it into"):
        install_jars(tmp_path, [JAR])
