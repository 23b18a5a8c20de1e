"""The files of ``conf/`` and the Makefile match what the program does."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from pipeline.config.settings import Settings
from pipeline.streaming.spark import session
from tests.paths import ROOT


def test_spark_defaults_are_those_of_the_session() -> None:
    text = (ROOT / "conf" / "spark-defaults.conf").read_text(encoding="utf-8")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    ours = session._FIXED | session._DEFAULTS | session._ONE_MACHINE
    assert {key: value for key, value in lines if ours.get(key) != value} == {}
    memory = "spark.driver.memory"  # with spark-submit the JVM runs already when the session is built
    assert dict(lines)[memory] == ours[memory]


def test_the_log_is_quiet() -> None:
    text = (ROOT / "conf" / "log4j2.properties").read_text(encoding="utf-8")
    levels = re.findall(r"^(\S+)\.level = (\w+)$", text, re.MULTILINE)
    assert dict(levels)["rootLogger"] in ("warn", "error")
    assert {level for _, level in levels} <= {"warn", "error", "off"}


def test_make_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    declared = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split()
    listed = subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT)], capture_output=True, text=True, check=True
    )
    names = [line.split()[1] for line in listed.stdout.splitlines()]
    assert names == re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)
    assert sorted(names) == sorted(declared)


@pytest.mark.parametrize("name", ["local.yaml", "cluster.yaml"])
def test_an_editor_that_knows_the_schema_finds_no_fault(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    file = ROOT / "conf" / name
    first, _, text = file.read_text(encoding="utf-8").partition("\n")
    schema = json.loads((file.parent / first.rpartition("=")[2]).read_text(encoding="utf-8"))
    assert schema == Settings.model_json_schema()
    jsonschema.validate(yaml.safe_load(text), schema)
    with pytest.raises(jsonschema.ValidationError, match="triger_seconds"):
        jsonschema.validate({"stream": {"triger_seconds": 1}}, schema)
