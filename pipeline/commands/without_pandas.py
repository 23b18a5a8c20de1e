"""Keep pandas out of a command that does not need it."""

from __future__ import annotations

import sys


def without_pandas() -> None:
    """From now on nothing loads pandas in this process."""
    sys.meta_path.insert(0, _NoPandas)


class _NoPandas:
    """Arrow loads pandas, where it is installed, to see whether a value is one of its: half a second for nothing."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """See importlib.abc.MetaPathFinder."""
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
