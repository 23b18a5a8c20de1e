"""The command ``wirelake``: starts with the packages of this distribution, whatever else has their names."""

from __future__ import annotations

import sys

from wirelake.own_packages import prefer, written_over


def main() -> None:
    """Run the command; the console script of the distribution."""
    prefer()
    try:
        from pipeline.cli import main as run  # noqa: PLC0415 - only now is it ours
    except Exception:
        for name, file in written_over():
            sys.stderr.write(
                f"error: the distribution {name} has written {file} into a package of Wirelake. Remove it and install "
                f"again: pip uninstall {name} && pip install --force-reinstall wirelake\n"
            )
            raise SystemExit(2) from None
        raise
    run()
