"""What ``make archive`` packs for the workers of a cluster; tests/end_to_end/test_cluster.py runs with it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from pipeline.config.settings import load_settings
from pipeline.errors import UserError
from pipeline.setup import archive
from pipeline.setup.jars import DELTA_JARS
from tests.paths import ROOT


def test_the_environment_is_what_runs_a_job_and_nothing_else() -> None:
    names = {found.metadata["Name"].lower().replace("_", "-") for found in archive.runtime_distributions()}
    assert names >= {"numpy", "pandas", "pyarrow", "numba", "llvmlite", "orjson", "cramjam", "crc32c", "zstandard"}
    assert names >= {"pymongo", "pydantic-settings", "pyyaml", "delta-spark", "six"}, "needed by others, or by an extra"
    assert "duckdb" in names, "the driver asks the rules with it, in the workers' environment in cluster mode"
    assert not names & {"pyspark", "py4j", "wirelake", "pytest", "mypy", "great-expectations", "scapy"}


def test_what_we_name_ourselves_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Distribution, "requires", property(lambda _: ["no-such-package>=1; extra == 'spark'"]))
    with pytest.raises(UserError, match="no-such-package is not installed: make setup"):
        archive.runtime_distributions()


def test_packages_are_packed_without_their_tests_and_with_their_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [found for found in archive.runtime_distributions() if found.metadata["Name"] in ("six", "orjson", "crc32c")]
    monkeypatch.setattr(archive, "runtime_distributions", lambda: few)
    archive.pack_environment(tmp_path / "env.tar.gz")
    with tarfile.open(tmp_path / "env.tar.gz") as packed:
        names = packed.getnames()
    assert {"six.py", "orjson/__init__.py", f"__pycache__/six.{sys.implementation.cache_tag}.pyc"} <= set(names)
    assert not [name for name in names if name.startswith(("/", "..")) or "tests" in Path(name).parts]


@pytest.mark.slow
def test_the_code_decodes_from_the_zip_with_the_kernel_in_it(tmp_path: Path) -> None:
    target = tmp_path / archive.CODE
    archive.pack_code(target)
    with zipfile.ZipFile(target) as packed:
        names = packed.namelist()
        for name in names:
            if name.startswith(f"{archive.KERNEL}/"):
                packed.extract(name, tmp_path)
    assert {"decoder/kafka/schema/messages.json", "pipeline/dashboard/views/errors.sql"} <= set(names)
    assert {Path(name).parts[0] for name in names} == {*archive.PACKAGES, archive.KERNEL}
    kernel = tmp_path / archive.KERNEL
    before = sorted(kernel.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", "import decoder.kafka.batch as k, decoder.mongodb.batch; print(k.__file__)"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PYTHONPATH": str(target), "NUMBA_CACHE_DIR": str(kernel)},
    )  # fmt: skip
    assert done.stdout.startswith(str(target))
    assert sorted(kernel.rglob("*")) == before, "the kernel was compiled again"


def test_cluster_settings_name_what_is_packed() -> None:
    spark = load_settings(ROOT / "conf" / "cluster.yaml").spark
    packed = dict(item.removeprefix("dist/").split("#") for item in spark["spark.archives"].split(","))
    assert set(packed) == {archive.CODE, archive.ENVIRONMENT}
    assert spark["spark.executorEnv.PYTHONPATH"] == f"{packed[archive.CODE]}:{packed[archive.ENVIRONMENT]}"
    assert spark["spark.executorEnv.NUMBA_CACHE_DIR"] == f"{packed[archive.CODE]}/{archive.KERNEL}"
    assert spark["spark.jars"] == ",".join(f"dist/{jar.file_name}" for jar in DELTA_JARS)
