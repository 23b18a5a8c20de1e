"""A lake of the sample captures, in which no panel is empty; and one that has only what panels ask for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pipeline.bi.panels import panels
from tests.pipeline.dashboard.web.addresses import sample_lake

_TABLE = re.compile(r"\b(silver|gold)\.(\w+)")
_OF_VIEWS = ("gold/offset_timeline", "gold/findings")


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_lake(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="session")
def small(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spark takes a second for each table that it gets to know: this lake has a third of them."""
    lake = tmp_path_factory.mktemp("small") / "lake"
    asked = {f"{schema}/{name}" for one in panels() for schema, name in _TABLE.findall(one.sql)}
    for path in sorted({*asked, *_OF_VIEWS}):
        shutil.copytree(samples / path, lake / path)
    return lake
