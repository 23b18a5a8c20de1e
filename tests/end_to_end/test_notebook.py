"""The notebooks run from top to bottom and show what they are kept with."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

from tests.end_to_end.notebooks import FOLDER, NAMES, outputs, run
from tests.paths import ROOT

STUDIES = sorted(set(NAMES) - {"tour"})
_MOST_BYTES = 200_000
_PROOFS = {"capacity", "latency", "mongodb", "panels"}
"""All go the same way, and each starts a kernel: one of them runs in `make test`."""


def kept(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def texts(notebook: Any) -> list[str]:
    return [one.get("text") or one["data"].get("text/plain", "") for one in outputs(notebook)]


def pictures(notebook: Any) -> list[bytes]:
    found = [one["data"]["image/png"] for one in outputs(notebook) if "image/png" in one.get("data", {})]
    return [base64.b64decode(one) for one in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.proof if name in _PROOFS else ()) for name in STUDIES]
)
def test_a_study_shows_what_it_is_kept_with(name: str) -> None:
    today = run(name)
    assert texts(today) == texts(kept(name)), "make notebooks"
    assert len(pictures(today)) == len(pictures(kept(name)))


@pytest.mark.spark
def test_the_tour_runs_and_plots(demo_lake: Path) -> None:
    tour = run("tour", WIRELAKE_LAKE=str(demo_lake))
    assert len(pictures(tour)) == 3
    text = "".join(texts(tour))
    assert "stuck_commit" in text
    assert "lso_stalled" in text


def test_pictures_of_the_tour_are_of_the_groups_that_its_sentences_are_about() -> None:
    text = "".join(texts(kept("tour")))
    assert "payments-2, group billing" in text, "the group that is stuck"
    assert "orders-0, group reports" in text, "the one that reads committed records alone"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept(name: str) -> None:
    notebook = kept(name)
    assert all(cell.outputs or "LAKE = begin(" in cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert not [one for one in outputs(notebook) if one.output_type == "error"]
    assert "\x1b" not in "".join(texts(notebook))
    assert str(ROOT) not in str(notebook)
    assert pictures(notebook)
    for picture in pictures(notebook):
        assert len(picture) <= _MOST_BYTES
        with Image.open(io.BytesIO(picture)) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        assert np.count_nonzero(np.ptp(pixels, axis=2) > 60) > 500, "it shows nothing"


def test_each_is_told_of() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}]({name}.ipynb)" in told for name in NAMES)
