"""Run the notebooks and keep what they show: ``python -m tests.end_to_end.notebooks [NAME…]``, or ``make notebooks``.

Each makes its lake by `wirelake diagnose` from a sample capture, so that none needs a JVM. The tour looks at the lake
that ``WIRELAKE_LAKE`` names; without it, at one of the demo's captures.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.paths import ROOT
from tests.pipeline.dashboard.web.addresses import sample_lake
from tests.pipeline.dashboard.web.browser.screens import small_png

FOLDER = ROOT / "notebooks"
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.ipynb")))
_MOST_SECONDS = 300
_COLOURS = (128, 64)


def run(name: str, **environment: str) -> Any:
    """The notebook with what it shows today."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    before = dict(os.environ)
    first = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(ROOT)}
    joined = {name: os.pathsep.join(filter(None, (value, before.get(name)))) for name, value in first.items()}
    os.environ.update({**joined, **environment})
    os.environ.pop("MPLBACKEND", None)  # Streamlit sets it where it was loaded: then no notebook shows a plot
    try:
        client = NotebookClient(
            notebook, timeout=_MOST_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
        )
        client.execute()
    finally:
        os.environ.clear()
        os.environ.update(before)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


def outputs(notebook: Any) -> Iterator[Any]:
    """Everything that its cells show."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield from cell.outputs


def _small(notebook: Any) -> Any:
    """The same with pictures of few colours, which are kept in the repository."""
    for one in outputs(notebook):
        if picture := one.get("data", {}).get("image/png"):
            one["data"]["image/png"] = base64.b64encode(small_png(base64.b64decode(picture), _COLOURS)).decode()
    return notebook


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="wirelake-tour-") as folder:
        for name in sys.argv[1:] or NAMES:
            lake = os.environ.get("WIRELAKE_LAKE") or (str(sample_lake(Path(folder))) if name == "tour" else "")
            file = FOLDER / f"{name}.ipynb"
            nbformat.write(_small(run(name, WIRELAKE_LAKE=lake)), file)
            print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
