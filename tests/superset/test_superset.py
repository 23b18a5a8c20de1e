"""The dashboard of conf/superset, imported into a real Superset: every chart has its place and, over JDBC, its rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.bi.panels import panels
from pipeline.dashboard.sql import query
from tests.paths import ROOT
from tests.pipeline.bi.conftest import samples, small
from tests.pipeline.bi.test_jdbc import TOKEN, Served, served
from tests.requirements import SUPERSET_BIN, require_superset

__all__ = ["samples", "served", "small"]
pytestmark = [pytest.mark.proof, pytest.mark.spark]
_CONFIG = """
SECRET_KEY = "only for this test, which nobody else reaches"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
"""


def superset(folder: Path, *command: str | Path) -> str:
    environment = {**os.environ, "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "FLASK_APP": "superset"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_each_chart_has_rows(served: Served, small: Path, tmp_path: Path) -> None:
    require_superset()
    (tmp_path / "superset_config.py").write_text(_CONFIG.format(folder=tmp_path))
    archive = shutil.make_archive(str(tmp_path / "wirelake"), "zip", ROOT / "conf", "superset")
    superset(tmp_path, SUPERSET_BIN / "superset", "db", "upgrade")
    admin = [
        "--username",
        "admin",
        "--password",
        "admin",
        "--firstname",
        "A",
        "--lastname",
        "B",
        "--email",
        "a@example.org",
    ]
    superset(tmp_path, SUPERSET_BIN / "superset", "fab", "create-admin", *admin)
    superset(tmp_path, SUPERSET_BIN / "superset", "init")  # which gives the role of an admin its rights
    address = f"hive://wirelake:{TOKEN}@127.0.0.1:{served.port}/views?auth=CUSTOM"
    script = ROOT / "tests" / "superset" / "import_and_ask.py"
    said = superset(tmp_path, SUPERSET_BIN / "python", script, archive, address)
    found = json.loads(said.splitlines()[-1])
    assert found["charts"] == {one.title: query(small, one.sql).num_rows for one in panels()}
    assert found["placed"] == sorted(one.title for one in panels())
