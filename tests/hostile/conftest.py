"""What attacks on the page need: a lake to read."""

from __future__ import annotations

from tests.pipeline.dashboard.conftest import hand_made_lake

__all__ = ["hand_made_lake"]
