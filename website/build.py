"""Build the site with MkDocs; what it warns of, e.g. a link or an anchor that leads nowhere, is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "dist" / "site"


class SiteError(Exception):
    """The site could not be built; says what MkDocs said."""


def build(site: Path, root: Path = ROOT) -> None:
    """Build the site of a checkout into a folder.

    Raises:
        SiteError: MkDocs warned of something.
    """
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(root / "mkdocs.yml"),
    ]
    done = subprocess.run(
        [*command, "--site-dir", str(site)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},    # Material's, of a release that is not asked for
    )  # fmt: skip
    if done.returncode:
        raise SiteError(done.stdout + done.stderr)
