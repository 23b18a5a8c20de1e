"""Where does what tests read lie? Counted once from here, so that a test may move to another folder."""

from __future__ import annotations

from pathlib import Path

import pipeline

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "tests" / "captures"
PIPELINE = Path(pipeline.__file__).parent
"""Of what is tested: of this checkout, or installed from a wheel."""
