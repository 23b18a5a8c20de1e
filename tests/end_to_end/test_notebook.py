"""Does the tour run from top to bottom on the demo's lake, and show its pictures?"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.paths import ROOT

NOTEBOOK = ROOT / "notebooks" / "tour.ipynb"


@pytest.mark.spark
def test_the_tour_runs_and_plots(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRELAKE_LAKE", str(demo_lake))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 3
    text = "".join(o.get("text", "") for o in outputs)
    assert "stuck_commit" in text
    assert "lso_stalled" in text


def test_the_tour_is_committed_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
